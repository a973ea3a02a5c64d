// A daemon that counts words: a line of JSON in, a line of JSON out; what it counted survives it.
const fs = require("node:fs");
const net = require("node:net");

const [port, file] = [Number(process.argv[2]), process.argv[3]];
const counts = new Map();
const journal = fs.existsSync(file) ? fs.readFileSync(file, "utf8").split("\n") : [];
journal.filter(Boolean).forEach(count);

function count(word) {
  counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts.get(word);
}

function answer(line) {
  let asked;
  try {
    asked = JSON.parse(line);
  } catch {
    return { error: "a line is one JSON object" };
  }
  if (typeof asked?.word !== "string" || !/^\w+$/.test(asked.word)) {
    return { error: "word: expected letters, digits and _" };
  }
  if (asked.op === "get") return { count: counts.get(asked.word) ?? 0 };
  if (asked.op !== "add") return { error: "op: expected add or get" };
  fs.appendFileSync(file, asked.word + "\n", { flush: true }); // before it is promised
  return { count: count(asked.word) };
}

const server = net.createServer((socket) => {
  let rest = "";
  socket.setEncoding("utf8");
  socket.on("error", () => socket.destroy());
  socket.on("data", (text) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    for (const line of lines) socket.write(JSON.stringify(answer(line)) + "\n");
  });
});

server.listen(port, "127.0.0.1", () => console.log(`counting on ${port}`));
process.on("SIGTERM", () => process.exit(0));
