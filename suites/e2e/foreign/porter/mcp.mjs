// MCP over streamable HTTP without a library: one POST is one question, its answer is JSON.
import http from 'node:http'

const LIMIT = 32 * 1024 * 1024

export class Refusal extends Error {}

export const serve = ({ port, name, tools }) => {
  const handle = async ({ method, params = {} }) => {
    if (method === 'initialize') {
      return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name, version: '1' } }
    }
    if (method === 'ping') return {}
    if (method === 'tools/list') {
      return { tools: Object.entries(tools).map(([name, { about, takes }]) => ({ name, description: about, inputSchema: takes })) }
    }
    if (method !== 'tools/call') throw Object.assign(new Error(`no method ${method}`), { code: -32601 })
    const tool = Object.hasOwn(tools, params.name) && tools[params.name]
    if (!tool) throw Object.assign(new Error(`no tool ${params.name}`), { code: -32602 })
    const answer = await tool.run(params.arguments ?? {})
    const content = [{ type: 'text', text: JSON.stringify(answer) }]
    return Array.isArray(answer) ? { content } : { content, structuredContent: answer }
  }
  const own = new Set([`127.0.0.1:${port}`, `localhost:${port}`])
  const server = http.createServer(async (request, response) => {
    const answer = (status, body) => response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(body === undefined ? '' : JSON.stringify(body))
    const hosts = request.rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === 'host')
    if (hosts.length !== 1 || !own.has(request.headers.host) || request.url[0] !== '/') return answer(421, { error: 'not my name' })
    if (request.url !== '/mcp') return answer(404, { error: 'nothing here' })
    if (request.method !== 'POST') return answer(405, { error: 'POST only' })
    const chunks = []
    let size = 0
    try {
      for await (const chunk of request) {
        size += chunk.length
        if (size > LIMIT) return answer(413, { error: 'too long' })
        chunks.push(chunk)
      }
    } catch { return }
    let asked
    try { asked = JSON.parse(Buffer.concat(chunks)) } catch { return answer(400, { error: 'no JSON' }) }
    if (asked.id === undefined) return answer(202)
    const reply = { jsonrpc: '2.0', id: asked.id }
    try {
      reply.result = await handle(asked)
    } catch (error) {
      const code = error instanceof Refusal ? -32602 : error.code ?? 0
      if (typeof code === 'number' && code < 0) reply.error = { code, message: error.message }
      else reply.result = { content: [{ type: 'text', text: error.message }], isError: true }
    }
    answer(200, reply)
  })
  return new Promise((resolve, reject) => {
    server.on('error', reject)
    server.listen(port, '127.0.0.1', 512, () => resolve(server))
  })
}

export const call = async (url, tool, args, seconds) => {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: tool, arguments: args } })
  const response = await fetch(url, {
    method: 'POST', body, headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }, signal: AbortSignal.timeout(seconds * 1000)
  })
  const reply = await response.json()
  if (reply.error) throw new Refusal(reply.error.message)
  if (reply.result.isError) throw new Error(reply.result.content[0].text)
  return reply.result.structuredContent
}
