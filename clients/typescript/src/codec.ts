// How payloads, results and progress become bytes and values again.
import { CodecError } from './errors.js'
import { encoded, IS_LONE, LONE } from './words.js'

/**
 * Turns values into bytes and bytes into values, for the payloads, results and progress of a queue.
 * Both sides of a queue use the same codec. Either function may throw: what cannot be encoded is
 * rejected by `add`, and a job whose payload cannot be decoded fails for good.
 */
export interface Codec {
  encode(value: unknown): Uint8Array | string
  decode(bytes: Buffer): unknown
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * JSON in UTF-8. It refuses NaN and infinities, integers beyond 2^53 - 1 in either direction,
 * bigints, and what JSON has nothing for (undefined, a function). Otherwise it is `JSON.stringify`:
 * in an object `undefined` and functions are left out, in an array they are null; a `Map` is `{}`,
 * and `toJSON` is called. It refuses to decode bytes that are not UTF-8.
 */
export const json: Codec = {
  encode(value) {
    const text: string | undefined = JSON.stringify(value)
    if (text === undefined) throw new CodecError(`JSON has no ${typeof value}`)
    // What is not finite became a null. To be asked about each value takes several times as long.
    if (text.includes('null')) JSON.stringify(value, refuseNotFinite)
    checkNumbers(text)
    return text
  },
  decode(bytes) {
    let text = bytes.toString()  // faster than with the name of the default
    // Bytes that are not UTF-8 became this character, which may also have been sent.
    if (text.includes('\ufffd')) text = strict.decode(bytes)
    const value: unknown = JSON.parse(text)
    checkNumbers(text)
    return value
  },
}

/** Bytes as they are. It encodes strings (as UTF-8) and bytes, and decodes to a `Buffer`. */
export const raw: Codec = {
  encode(value) {
    if (value instanceof Uint8Array) return value
    if (typeof value === 'string') {
      if (LONE.test(value)) throw new CodecError(`the string ${IS_LONE}`)
      return value
    }
    throw new CodecError(`the codec raw takes strings and bytes, not ${typeof value}`)
  },
  decode(bytes) {
    return bytes
  },
}

/** The codec of this name, or the codec itself. */
export function codecOf(chosen: 'json' | 'raw' | Codec | undefined): Codec {
  if (chosen === undefined || chosen === 'json') return json
  return chosen === 'raw' ? raw : chosen
}

/** Throws CodecError. */
export function encodeWith(codec: Codec, value: unknown): Buffer | string {
  try {
    return encoded(codec.encode(value))
  } catch (error) {
    throw asCodecError(error, '')
  }
}

/** Throws CodecError, whose text begins with `what`. */
export function decodeWith(codec: Codec, bytes: Buffer, what: string): unknown {
  try {
    return codec.decode(bytes)
  } catch (error) {
    throw asCodecError(error, `${what}: `)
  }
}

/** The progress of a job; what cannot be decoded, as other programs may set it, stays bytes. */
export function decodeProgress(codec: Codec, bytes: Buffer): unknown {
  try {
    return codec.decode(bytes)
  } catch {
    return bytes
  }
}

function asCodecError(error: unknown, before: string): CodecError {
  if (error instanceof CodecError) return error
  const message = error instanceof Error ? error.message : String(error)
  return new CodecError(before + message, { cause: error })
}

function refuseNotFinite(_key: string, value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value)) {
    throw new CodecError(`JSON has no ${value}`)
  }
  return value
}

// What a long or exponential number has, which is found fast; and such a number, or what looks like
// one in a string.
const PART = /\d{16}|\d[eE]/
const SUSPECT = /(?:^|[[,:\s])-?\d+(?:\d{15}|[.\d]*[eE])/

// Integers written out that a double cannot hold, and numbers too large for one. Only text with a
// suspect is scanned.
function checkNumbers(text: string): void {
  if (!PART.test(text) || !SUSPECT.test(text)) return
  let at = 0
  while (at < text.length) {
    const char = text[at] ?? ''
    if (char === '"') {
      at = endOfString(text, at + 1)
    } else if (char === '-' || (char >= '0' && char <= '9')) {
      const end = endOfNumber(text, at + 1)
      checkNumber(text.slice(at, end))
      at = end
    } else {
      ++at
    }
  }
}

function endOfString(text: string, start: number): number {
  let at = start
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return at + 1
}

function endOfNumber(text: string, start: number): number {
  let at = start
  while (at < text.length && '0123456789+-.eE'.includes(text[at] ?? ' ')) ++at
  return at
}

function checkNumber(text: string): void {
  const value = Number(text)
  if (!Number.isFinite(value)) throw new CodecError(`${text} is too large for a number`)
  if (!/[.eE]/.test(text) && !Number.isSafeInteger(value)) {
    throw new CodecError(`${text} is beyond the integers that a number holds exactly`)
  }
}
