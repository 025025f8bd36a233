// Views under names: the address of a view with its filters, kept by this browser.
import { visible } from "./bytes";
import { ask, field } from "./dialogs";
import { h, replace, show } from "./dom";
import { moment } from "./format";

const KEY = "sluice-views";
const MOST = 50;
const MOST_NAME = 60;

interface SavedView {
  name: string;
  // From '#' on.
  link: string;
  saved: number;
}

function is_view(value: unknown): value is SavedView {
  const { name, link, saved } = value as SavedView;
  return typeof name === "string" && typeof saved === "number" && typeof link === "string"
    && link.startsWith("#/");
}

function stored(): SavedView[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter((each) => each && is_view(each)) : [];
  } catch {
    // Storage is off, or holds something else.
    return [];
  }
}

// A page of a list is no view: it begins elsewhere when jobs have come and gone.
const link_here = () => (location.hash || "#/").replace(/([?&])from=[^&]*(?:&|$)/, "$1")
  .replace(/[?&]$/, "");

// Throws if the browser keeps nothing.
function store(views: SavedView[]): void {
  localStorage.setItem(KEY, JSON.stringify(views));
}

// "The last hour" is the last one when it is opened, not when it was saved.
function link_now({ link, saved }: SavedView): string {
  if (/[?&]until=/.test(link)) return link;
  return link.replace(/([?&]since=)(\d{1,15})/, (_, before, since) =>
    `${before}${Number(since) + Date.now() - saved}`);
}

// `title`: of the present view, its suggested name.
export function ask_for_views(title: string): void {
  const name = h("input", { name: "name", maxlength: MOST_NAME, autocomplete: "off",
    value: visible(title).slice(0, MOST_NAME) });
  const list = h("ul.saved", { "aria-label": "Saved views" });
  const none = h("p.dim", {}, "None is saved yet.");
  const draw = () => {
    const views = stored();
    show(none, views.length === 0);
    replace(list, ...views.map((view) => h("li", {},
      h("a", { href: link_now(view) }, h("bdi", {}, visible(view.name))),
      h("small", {}, `saved ${moment(view.saved)}`),
      h("button.icon", { type: "button", "aria-label": `Remove ${visible(view.name)}`,
        click: () => {
          store(stored().filter((each) => each.name !== view.name));
          draw();
          name.focus();
        } }, "×"))));
  };
  draw();
  ask({
    title: "Saved views",
    content: [none, list, field("Save this view, with its filters, as", name,
      "In this browser only. The same name replaces the view."),
    ],
    confirm: "Save",
    done: async () => {
      const wanted = name.value.trim();
      if (wanted === "") throw new Error("A view needs a name.");
      const others = stored().filter((each) => each.name !== wanted);
      if (others.length >= MOST) throw new Error(`At most ${MOST} views are kept: remove one.`);
      const saved: SavedView = { name: wanted, link: link_here(), saved: Date.now() };
      store([...others, saved].sort((a, b) => a.name.localeCompare(b.name)));
    },
  });
}
