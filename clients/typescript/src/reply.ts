// Replies of the server as ioredis hands them out, and how to read them. RESP2 and RESP3 differ in
// little: a map is a flat array in both (ioredis 6 flattens it), a boolean is 1 or 0 or a boolean.

/** A reply. Strings are bytes; an error inside an array is an element of it. */
export type Reply = Buffer | string | number | boolean | null | Error | readonly Reply[]

/** A reply that does not have the shape that the command promises. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError'
}

export function isArray(reply: Reply | undefined): reply is readonly Reply[] {
  return Array.isArray(reply)
}

export function arrayOf(reply: Reply | undefined): readonly Reply[] {
  if (isArray(reply)) return reply
  throw new ProtocolError(`an array was expected, not ${describe(reply)}`)
}

export function textOf(reply: Reply | undefined): string {
  if (Buffer.isBuffer(reply)) return reply.toString()  // the default, which is faster than its name
  if (typeof reply === 'string') return reply
  if (typeof reply === 'number') return String(reply)
  throw new ProtocolError(`a string was expected, not ${describe(reply)}`)
}

export function bytesOf(reply: Reply | undefined): Buffer {
  if (Buffer.isBuffer(reply)) return reply
  if (typeof reply === 'string') return Buffer.from(reply)
  throw new ProtocolError(`bytes were expected, not ${describe(reply)}`)
}

export function numberOf(reply: Reply | undefined): number {
  const value = typeof reply === 'number' ? reply : Number(textOf(reply))
  if (Number.isFinite(value)) return value
  throw new ProtocolError(`a number was expected, not ${describe(reply)}`)
}

export function yesOrNo(reply: Reply | undefined): boolean {
  return typeof reply === 'boolean' ? reply : numberOf(reply) !== 0
}

/** What `read` makes of it; null stays null. */
export function orNull<T>(reply: Reply | undefined, read: (reply: Reply) => T): T | null {
  return reply === null || reply === undefined ? null : read(reply)
}

export function textsOf(reply: Reply | undefined): string[] {
  return arrayOf(reply).map(textOf)
}

/** A map, which comes as names and values in turn. */
export function mapOf(reply: Reply | undefined): Map<string, Reply> {
  const flat = arrayOf(reply)
  const map = new Map<string, Reply>()
  for (let at = 0; at + 1 < flat.length; at += 2) map.set(textOf(flat[at]), flat[at + 1] ?? null)
  return map
}

/** A map of strings. */
export function tagsOf(reply: Reply | undefined): Record<string, string> {
  return Object.fromEntries([...mapOf(reply)].map(([name, value]) => [name, textOf(value)]))
}

/** A field's name in camel case, without `_ms`: all times are milliseconds. */
export function fieldName(name: string): string {
  return name.replace(/_ms$/, '').replace(/_(\w)/g, (_all, letter: string) => letter.toUpperCase())
}

function describe(reply: Reply | undefined): string {
  if (reply instanceof Error) return `the error ${reply.message}`
  return Array.isArray(reply) ? 'an array' : String(reply)
}
