import assert from 'node:assert/strict'
import { test } from 'node:test'
import { codecOf, json, raw } from '../src/codec.js'
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

test('a codec is chosen by name, or given', () => {
  const own = { encode: String, decode: String }
  assert.equal(codecOf(undefined), json)
  assert.equal(codecOf('raw'), raw)
  assert.equal(codecOf(own), own)
})
