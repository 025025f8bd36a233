// Names, ids and payloads are arbitrary bytes. Inside the page they are strings of one form,
// segments: percent-encoded as URLs need it, and equal exactly when the bytes are.

// A byte order mark is a part of a name like any other.
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

// Characters that the path of a URL can contain unencoded.
const PLAIN = /[A-Za-z0-9_.~-]/;
// Each byte as a segment has it, and as people read it. A payload has a million of them.
const ENCODED: string[] = [];
const READABLE: string[] = [];
for (let byte = 0; byte < 256; ++byte) {
  const character = String.fromCharCode(byte);
  const digits = byte.toString(16).padStart(2, "0");
  ENCODED.push(PLAIN.test(character) ? character : `%${digits.toUpperCase()}`);
  READABLE.push(byte > 32 && byte < 127 ? character : `\\x${digits}`);
}

function segment_of_bytes(bytes: Uint8Array): string {
  let segment = "";
  for (const byte of bytes) segment += ENCODED[byte];
  return segment;
}

function of_base64(text: string): string {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = characters.charCodeAt(i);
  return segment_of_bytes(bytes);
}

export function segment_of_text(text: string): string {
  return segment_of_bytes(encoder.encode(text));
}

// The bytes of member `name` of a response, as a segment; null if it is null.
export function segment_of(object: object, name: string): string | null {
  const members = object as Record<string, unknown>;
  const value = members[name];
  if (typeof value === "string") return segment_of_text(value);
  const coded = members[name + "_base64"];
  return typeof coded === "string" ? of_base64(coded) : null;
}

const names = new WeakMap<object, string>();

// The name of a line of an answer, which is asked for time and again: made once.
export function name_of(line: object): string {
  let name = names.get(line);
  if (name === undefined) {
    name = segment_of(line, "name") ?? "";
    names.set(line, name);
  }
  return name;
}

// The name of a member: `base64:` begins the name of bytes that are not UTF-8.
export function segment_of_name(name: string): string {
  return name.startsWith("base64:") ? of_base64(name.slice(7)) : segment_of_text(name);
}

// The members of an object whose names and values may be any bytes, as segments.
export function entries_of(object: Record<string, unknown>): [string, string][] {
  return Object.keys(object).flatMap((name) => {
    const coded = name.endsWith("_base64") && object[name.slice(0, -7)] === null;
    const value = coded ? null : segment_of(object, name);
    return value === null ? [] : [[segment_of_name(name), value] as [string, string]];
  });
}

export function segment_of_item(item: string | { base64: string }): string {
  return typeof item === "string" ? segment_of_text(item) : of_base64(item.base64);
}

function bytes_of(segment: string): Uint8Array {
  const given = encoder.encode(segment);
  const bytes = new Uint8Array(given.length);
  let size = 0;
  for (let i = 0; i < given.length; ++i) {
    const code = given[i] === 0x25 ? 16 * digit(given[i + 1]) + digit(given[i + 2]) : NaN;
    bytes[size++] = Number.isNaN(code) ? given[i] : code;
    if (!Number.isNaN(code)) i += 2;
  }
  return bytes.subarray(0, size);
}

// The value of a hexadecimal digit; NaN for any other character.
function digit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const small = code | 0x20;
  return small >= 0x61 && small <= 0x66 ? small - 0x61 + 10 : NaN;
}

// A segment from an address: browsers and people write the same bytes in several ways.
export function canonical_segment(text: string): string {
  return segment_of_bytes(bytes_of(text));
}

// The text, or nothing if the bytes are not UTF-8.
export function text_of(segment: string): string | null {
  try {
    return decoder.decode(bytes_of(segment));
  } catch {
    return null;
  }
}

// Members of a request's body for these bytes.
export function body_member(name: string, segment: string): Record<string, string> {
  const text = text_of(segment);
  if (text !== null) return { [name]: text };
  return { [name + "_base64"]: base64_of(segment) };
}

// An item of an array, or a value of an object, of a request's body.
export function body_item(segment: string): string | { base64: string } {
  return text_of(segment) ?? { base64: base64_of(segment) };
}

export function base64_of(segment: string): string {
  let characters = "";
  for (const byte of bytes_of(segment)) characters += String.fromCharCode(byte);
  return btoa(characters);
}

// Characters that would be invisible, or change the direction of the text around them: shown as
// their numbers.
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}]/gu;

function numbered(character: string): string {
  const point = character.codePointAt(0) ?? 0;
  return point < 256 ? "\\x" + point.toString(16).padStart(2, "0") : `\\u{${point.toString(16)}}`;
}

export function visible(text: string): string {
  return text.replace(INVISIBLE, numbered);
}

// Those as `escape` writes their hexadecimal numbers, for text that is a program's.
export function escaped(text: string, escape: (point: string) => string): string {
  return text.replace(INVISIBLE, (character) =>
    escape((character.codePointAt(0) ?? 0).toString(16)));
}

// Like `visible`, but line breaks are kept.
export function visible_lines(text: string): string {
  return text.replace(INVISIBLE, (c) => (c === "\n" || c === "\t" ? c : numbered(c)));
}

// The text for people.
export function shown(segment: string | null): string {
  if (segment === null) return "";
  const text = text_of(segment);
  if (text !== null) {
    const seen = visible(text);
    // A name of blanks alone would be nothing, and its link could not be hit.
    return seen.trim() === "" ? seen.replaceAll(" ", "\\x20") : seen;
  }
  let readable = "";
  for (const byte of bytes_of(segment)) readable += READABLE[byte];
  return readable;
}

// What may be a character of several bytes, else one byte of it.
const HIGH = /%[CD].%[89AB].|%E.(?:%[89AB].){2}|%F.(?:%[89AB].){3}|%[89A-F]./g;

// The text; of one that is not quite UTF-8 all that is, and the other bytes as their numbers.
export function lenient_text_of(segment: string): string {
  return text_of(segment) ?? text_of(segment.replace(HIGH, (bytes) =>
    text_of(bytes) === null ? bytes.replaceAll("%", "\\x").toLowerCase() : bytes)) ?? "";
}

// The text for people, with its line breaks.
export function shown_lines(segment: string | null): string {
  return segment === null ? "" : visible_lines(lenient_text_of(segment));
}

// Browsers remove these two at the end of a URL's path, however they are encoded.
export function is_addressable(segment: string): boolean {
  return segment !== "." && segment !== ".." && segment !== "";
}
