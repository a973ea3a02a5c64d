// Token, questions and the stream. The token is kept for this tab alone and sent as a header.
const given = new URLSearchParams(location.search).get("token");
if (given) {
  sessionStorage.setItem("token", given);
  history.replaceState(null, "", `/${location.hash}`);
}
const headers = { authorization: `Bearer ${given || sessionStorage.getItem("token") || ""}` };

// Answers with JSON, or throws an Error with the sentence of the server.
async function ask(path, body) {
  const options = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const answer = await fetch(path, { ...options, headers: { ...headers, "content-type": "application/json" } });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

class Stream {
  // take: event name → what is done with its data. says(word): how the connection is.
  constructor({ take, says }) {
    Object.assign(this, { take, says, last: 0, tries: 0 });
  }

  async run() {
    for (;;) {
      const status = await this.once().catch(() => 0);
      if (status === 401) return this.says("locked");
      this.says(this.tries > 5 ? "ended" : "lost");
      await new Promise((done) => setTimeout(done, Math.min(5000, 250 * 2 ** this.tries++)));
    }
  }

  async once() {
    const answer = await fetch(`/events?after=${this.last}`, { headers, cache: "no-store" });
    if (!answer.ok) return answer.status;
    this.tries = 0;
    this.says("live");
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return 200;
      const pieces = (rest + value).split("\n\n");
      rest = pieces.pop();
      for (const piece of pieces) this.read(piece);
    }
  }

  read(piece) {
    const found = /^event: (\w+)\ndata: (.*)$/s.exec(piece);
    if (!found || !this.take[found[1]]) return;
    const data = JSON.parse(found[2]);
    if (found[1] === "rows") this.last = data.at(-1)[0];
    this.take[found[1]](data);
  }
}

function toast(text) {
  const box = document.getElementById("toast");
  box.textContent = text;
  box.hidden = !text;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => { box.hidden = true; }, 8000);
}
