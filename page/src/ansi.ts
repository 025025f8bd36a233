// The colours of a terminal in a log: sequences for colour and weight become elements, others are
// left out. What remains is plain text.
import { visible_lines } from "./bytes";
import { h } from "./dom";

const SEQUENCE = /\x1b\[([0-9;:?]*)([@-~])/g;

interface Style {
  // 0 to 7 and 8 for grey; null: the usual one.
  colour: number | null;
  bold: boolean;
}

// The style after a sequence `ESC [ codes m`. Codes with arguments (38, 48) end it.
function styled(before: Style, codes: string): Style {
  let { colour, bold } = before;
  for (const code of (codes || "0").split(";").map(Number)) {
    if (code === 0) [colour, bold] = [null, false];
    else if (code === 1) bold = true;
    else if (code === 22) bold = false;
    else if (code === 39) colour = null;
    else if (code >= 30 && code <= 37) colour = code - 30;
    else if (code >= 90 && code <= 97) colour = code === 90 ? 8 : code - 90;
    else if (code === 38 || code === 48) break;
  }
  return { colour, bold };
}

// A text that comes in pieces.
export class Colours {
  private style: Style = { colour: null, bold: false };

  take(text: string): (string | HTMLElement)[] {
    const parts: (string | HTMLElement)[] = [];
    const add = (part: string) => {
      const { colour, bold } = this.style;
      const words = visible_lines(part.replaceAll("\r\n", "\n"));
      if (words === "") return;
      if (colour === null && !bold) parts.push(words);
      else parts.push(h("span", { "data-ansi": colour, "data-bold": bold ? "" : null }, words));
    };
    let at = 0;
    for (const found of text.matchAll(SEQUENCE)) {
      add(text.slice(at, found.index));
      at = found.index + found[0].length;
      if (found[2] === "m") this.style = styled(this.style, found[1]);
    }
    add(text.slice(at));
    return parts;
  }
}
