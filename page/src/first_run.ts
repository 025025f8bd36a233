// What to paste for the first job, with this server's port.
import { state } from "./api";
import { h, replace } from "./dom";
import { copy_button } from "./notices";

type Language = "redis-cli" | "Python" | "TypeScript";

function code(language: Language, queue: string, db: number): string {
  const port = state.session?.port ?? 6379;
  const host = location.hostname || "localhost";
  const url = `redis://${host}:${port}${db ? `/${db}` : ""}`;
  if (language === "Python") {
    return `from sluice import Queue\n\nqueue = Queue("${queue}", "${url}")\n`
      + "job = queue.add({\"to\": \"ada\"}, pri=\"high\")\n"
      + "print(job.id, job.state, \"at position\", job.position)\n";
  }
  if (language === "TypeScript") {
    return "import { Queue } from '@sluice/queue'\n\n"
      + `const queue = new Queue('${queue}', { url: '${url}' })\n`
      + "const job = await queue.add({ to: 'ada' }, { pri: 'high' })\n"
      + "console.log(job.id, job.state, 'at position', job.position)\nqueue.close()\n";
  }
  const at = (host === "localhost" || host === "127.0.0.1" ? "" : ` -h ${host}`)
    + (port === 6379 ? "" : ` -p ${port}`) + (db ? ` -n ${db}` : "");
  return `redis-cli${at} Q.ADD ${queue} '*' '{"to":"ada"}' PRI HIGH\n`;
}

// Tabs with the code of each language. `queue`: plain letters.
export function first_job(queue: string, db: number): HTMLElement {
  const languages: Language[] = ["redis-cli", "Python", "TypeScript"];
  const body = h("div.code");
  const tabs = languages.map((language) => h("button", { role: "tab", type: "button",
    "aria-selected": "false", click: () => choose(language) }, language));
  const choose = (language: Language) => {
    for (const tab of tabs) tab.setAttribute("aria-selected", String(tab.textContent === language));
    const text = code(language, queue, db);
    replace(body, h("pre", { tabindex: 0 }, text), copy_button(() => text));
  };
  choose("redis-cli");
  return h("div.first-job", {},
    h("div.tabs", { role: "tablist", "aria-label": "Language" }, ...tabs), body,
    state.session?.port ? null : h("p.dim", {}, "This server does not show its port here; "
      + "6379 is the usual one."));
}
