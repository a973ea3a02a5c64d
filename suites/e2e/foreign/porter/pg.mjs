// PostgreSQL's wire protocol, as much of it as a porter needs: log in, ask, listen.
import net from 'node:net'
import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto'

const int16 = n => { const b = Buffer.alloc(2); b.writeInt16BE(n); return b }
const int32 = n => { const b = Buffer.alloc(4); b.writeInt32BE(n); return b }
const text = s => Buffer.from(`${s}\0`)
const message = (kind, ...parts) => {
  const body = Buffer.concat(parts)
  return Buffer.concat([Buffer.from(kind), int32(body.length + 4), body])
}
const hmac = (key, data) => createHmac('sha256', key).update(data).digest()
const sha = data => createHash('sha256').update(data).digest()
const md5 = (...data) => createHash('md5').update(Buffer.concat(data.map(d => Buffer.from(d)))).digest('hex')

const asValue = (raw, type) => {
  if ([16].includes(type)) return raw === 't'
  if ([20, 21, 23, 700, 701].includes(type)) return Number(raw)
  if ([114, 3802].includes(type)) return JSON.parse(raw)
  return raw
}
const asParam = v => v === null || v === undefined ? null : Buffer.from(typeof v === 'object' ? JSON.stringify(v) : String(v))

class Line {
  constructor (address) {
    const url = new URL(address.replace(/^postgres(ql)?:/, 'http:'))
    this.user = decodeURIComponent(url.username)
    this.password = decodeURIComponent(url.password)
    this.database = url.pathname.slice(1)
    this.buffer = Buffer.alloc(0)
    this.dead = false
    this.socket = net.connect(Number(url.port || 5432), url.hostname)
    this.ready = new Promise((resolve, reject) => { this.job = { resolve, reject, rows: [] } })
    this.socket.on('connect', () => {
      const body = Buffer.concat([int32(196608), text('user'), text(this.user), text('database'), text(this.database), Buffer.from([0])])
      this.socket.write(Buffer.concat([int32(body.length + 4), body]))
    })
    this.socket.on('data', chunk => this.take(chunk))
    const lost = why => {
      this.dead = true
      this.socket.destroy()
      this.job?.reject(new Error(`the database is gone: ${why?.message ?? 'connection closed'}`))
      this.job = null
    }
    this.socket.on('error', lost)
    this.socket.on('close', () => lost())
  }

  take (chunk) {
    this.buffer = Buffer.concat([this.buffer, chunk])
    while (this.buffer.length >= 5) {
      const size = this.buffer.readInt32BE(1) + 1
      if (this.buffer.length < size) return
      this.hear(String.fromCharCode(this.buffer[0]), this.buffer.subarray(5, size))
      this.buffer = this.buffer.subarray(size)
    }
  }

  hear (kind, body) {
    const job = this.job
    if (kind === 'R') this.login(body)
    if (!job) return
    if (kind === 'T') {
      job.columns = []
      for (let i = 0, at = 2; i < body.readInt16BE(0); i++) {
        const end = body.indexOf(0, at)
        job.columns.push([body.toString('utf8', at, end), body.readInt32BE(end + 7)])
        at = end + 19
      }
    }
    if (kind === 'D') {
      const row = {}
      let at = 2
      for (const [name, type] of job.columns) {
        const length = body.readInt32BE(at)
        at += 4
        row[name] = length < 0 ? null : asValue(body.toString('utf8', at, at + length), type)
        at += Math.max(length, 0)
      }
      job.rows.push(row)
    }
    if (kind === 'E') job.error = new Error((body.toString().split('\0').find(f => f[0] === 'M') ?? 'M?').slice(1))
    if (kind === 'E' && !this.open) { this.job = null; this.dead = true; job.reject(job.error) }
    if (kind === 'Z') {
      this.open = true
      this.job = null
      job.error ? job.reject(job.error) : job.resolve(job.rows)
    }
  }

  login (body) {
    const way = body.readInt32BE(0)
    if (way === 3) this.socket.write(message('p', text(this.password)))
    if (way === 5) this.socket.write(message('p', text('md5' + md5(md5(this.password, this.user), body.subarray(4, 8)))))
    if (way === 10) {
      this.first = `n=,r=${randomBytes(18).toString('base64')}`
      const hello = Buffer.from(`n,,${this.first}`)
      this.socket.write(message('p', text('SCRAM-SHA-256'), int32(hello.length), hello))
    }
    if (way === 11) {
      const challenge = body.toString('utf8', 4)
      const { r, s, i } = Object.fromEntries(challenge.split(',').map(f => [f[0], f.slice(2)]))
      const salted = pbkdf2Sync(this.password, Buffer.from(s, 'base64'), Number(i), 32, 'sha256')
      const key = hmac(salted, 'Client Key')
      const last = `c=biws,r=${r}`
      const mask = hmac(sha(key), `${this.first},${challenge},${last}`)
      const proof = Buffer.from(key.map((byte, n) => byte ^ mask[n])).toString('base64')
      this.socket.write(message('p', Buffer.from(`${last},p=${proof}`)))
    }
  }

  run (bytes) {
    return new Promise((resolve, reject) => {
      this.job = { resolve, reject, rows: [], columns: [] }
      this.socket.write(bytes)
    })
  }
}

// One line, one question at a time; a line that was lost is opened anew by the next question.
export const database = address => {
  let line = null
  let turn = Promise.resolve()
  const inTurn = ask => {
    const mine = turn.then(async () => {
      if (!line || line.dead) { line = new Line(address); await line.ready }
      return ask(line)
    })
    turn = mine.catch(() => {})
    return mine
  }
  return {
    script: sql => inTurn(l => l.run(message('Q', text(sql)))),
    ask: (sql, ...values) => inTurn(l => l.run(Buffer.concat([
      message('P', text(''), text(sql), int16(0)),
      message('B', text(''), text(''), int16(0), int16(values.length),
        ...values.map(asParam).flatMap(v => v === null ? [int32(-1)] : [int32(v.length), v]), int16(0)),
      message('D', Buffer.from('P'), text('')),
      message('E', text(''), int32(0)),
      message('S')
    ]))),
    close: () => line?.socket.end(message('X'))
  }
}
