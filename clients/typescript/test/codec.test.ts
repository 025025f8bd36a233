import assert from 'node:assert/strict'
import { test } from 'node:test'
import { codecOf, decodeProgress, json, raw } from '../src/codec.js'
import { CodecError } from '../src/errors.js'

const decode = (text: string): unknown => json.decode(Buffer.from(text))

test('json carries what JSON has', () => {
  for (const value of [null, true, 'a"\\ü', [1.5, -2], { a: { b: [] } }, 2 ** 53 - 1, 1e300]) {
    assert.deepEqual(decode(String(json.encode(value))), value)
  }
})

test('json refuses to encode what would arrive as something else', () => {
  const cyclic: { self?: unknown } = {}
  cyclic.self = cyclic
  for (const value of [NaN, [Infinity], { a: -Infinity }, 2 ** 53, -(2 ** 60), undefined]) {
    assert.throws(() => json.encode(value), CodecError, String(value))
  }
  for (const value of [10n, cyclic]) assert.throws(() => json.encode(value), TypeError)
})

test('json refuses to decode numbers that a number does not hold', () => {
  const texts =
    ['9007199254740993', '[1,-9007199254740992]', '{"a":1e999}', '1234567890123456789']
  for (const text of texts) {
    assert.throws(() => decode(text), CodecError, text)
  }
  assert.throws(() => decode('{'), SyntaxError)
})

test('json takes digits in strings and long decimals for what they are', () => {
  assert.equal(decode('"90071992547409931234 \\" 1e999"'), '90071992547409931234 " 1e999')
  assert.equal(decode('0.12345678901234567890'), 0.12345678901234568)
  assert.equal(decode('1e17'), 1e17)
  assert.deepEqual(decode('{"9007199254740993":9007199254740991}'),
    { '9007199254740993': 9007199254740991 })
})

test('raw takes bytes and strings only', () => {
  const bytes = Buffer.from([0, 255])
  assert.equal(raw.encode(bytes), bytes)
  assert.equal(raw.decode(bytes), bytes)
  assert.throws(() => raw.encode(1), CodecError)
})

test('a string that UTF-8 cannot express is refused by raw, and escaped by json', () => {
  assert.equal(raw.encode('\u{1f600}'), '\u{1f600}')
  for (const text of ['\ud800', 'a\udc00', '\udc00\ud800']) {
    assert.throws(() => raw.encode(text), CodecError)
    assert.equal(decode(String(json.encode(text))), text)
  }
})

test('a codec is chosen by name, or given', () => {
  const own = { encode: String, decode: String }
  assert.equal(codecOf(undefined), json)
  assert.equal(codecOf('raw'), raw)
  assert.equal(codecOf(own), own)
})

// As JSON is written: some numbers that are refused, some text that only looks like it.
function randomJson(random: () => number, depth = 0): string {
  const pick = (...from: string[]): string => from[Math.floor(random() * from.length)] ?? ''
  const digits = (): string => `${1 + Math.floor(random() * 9)}`.padEnd(1 + random() * 22, '0127')
  const number = (): string => pick('', '-') + pick(digits(), '0') + pick('', '', `.${digits()}`) +
    pick('', '', `${pick('e', 'E')}${pick('', '+', '-')}${pick('1', '22', '308', '309', '400')}`)
  const text = (): string =>
    `"${pick('', ',', ' ', '[', ':', '\\"', '\\\\', 'a1e5')}${pick(number(), 'x', digits())}"`
  const space = (): string => pick('', '', ' ', '\n', '\t')
  const inner = (): string => space() + randomJson(random, depth + 1) + space()
  const kind = depth > 3 ? random() * 0.6 : random()
  if (kind < 0.4) return number()
  if (kind < 0.6) return pick(text(), 'null', 'true')
  const many = Array.from({ length: random() * 4 })
  return kind < 0.8 ? `[${many.map(inner).join(',')}]`
    : `{${many.map(() => `${text()}${space()}:${inner()}`).join(',')}}`
}

// The numbers of a text outside of its strings.
function isRefused(text: string): boolean {
  const numbers = text.replace(/"(?:[^"\\]|\\.)*"/g, '').match(/-?\d[\d.eE+-]*/g) ?? []
  return numbers.some((number) => !Number.isFinite(Number(number)) ||
    (!/[.eE]/.test(number) && !Number.isSafeInteger(Number(number))))
}

test('json finds every number that it refuses, and no other', () => {
  let state = 1
  const random = (): number => {
    state = (state * 48271) % 2147483647
    return state / 2147483647
  }
  let refused = 0
  for (let n = 0; n < 20_000; ++n) {
    const text = randomJson(random)
    if (isRefused(text)) {
      ++refused
      assert.throws(() => decode(text), CodecError, text)
    } else {
      assert.deepEqual(decode(text), JSON.parse(text))
    }
  }
  assert.ok(refused > 2000 && refused < 18_000, `${refused}`)
  assert.throws(() => decode(`${'9'.repeat(400)}.5`), CodecError)
})

test('json refuses bytes that are not UTF-8', () => {
  assert.throws(() => json.decode(Buffer.from([0x22, 0xff, 0x22])), TypeError)
  assert.equal(decode('"\ufffd"'), '\ufffd')
})

test('progress that cannot be decoded stays bytes', () => {
  assert.deepEqual(decodeProgress(json, Buffer.from('{"step":3}')), { step: 3 })
  for (const bytes of [Buffer.from('step 3'), Buffer.from([0xff]), Buffer.from('1e999')]) {
    assert.equal(decodeProgress(json, bytes), bytes)
  }
})
