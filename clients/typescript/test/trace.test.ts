import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { hasTracing, inTrace, withTraceparent } from '../src/trace.js'

const API = Symbol.for('opentelemetry.js.api.1')
const globals = globalThis as { [API]?: object }

afterEach(() => {
  delete globals[API]
})

function register(): { current: string } {
  const state = { current: 'producer' }
  globals[API] = {
    context: {
      active: () => state.current,
      with: (context: string, run: () => unknown) => {
        state.current = context
        return run()
      },
    },
    propagation: {
      inject: (context: string, carrier: object, setter: {
        set(carrier: object, name: string, value: string): void,
      }) => setter.set(carrier, 'traceparent', `00-${context}`),
      extract: (_context: string, carrier: object, getter: {
        get(carrier: object, name: string): string | undefined,
      }) => `consumer of ${getter.get(carrier, 'traceparent')}`,
    },
  }
  return state
}

test('without OpenTelemetry nothing is added', () => {
  const options = { tags: { a: 'b' } }
  assert.equal(hasTracing(), false)
  assert.equal(withTraceparent(options), options)
  assert.equal(inTrace({ traceparent: 'x' }, () => 1), 1)
})

test('the span of the producer is the parent of the run', () => {
  const state = register()
  const { tags } = withTraceparent({ tags: { a: 'b' } })
  assert.deepEqual(tags, { a: 'b', traceparent: '00-producer' })
  assert.equal(inTrace(tags ?? {}, () => state.current), 'consumer of 00-producer')
})

test('a tag of the caller is kept', () => {
  register()
  assert.deepEqual(withTraceparent({ tags: { traceparent: 'own' } }).tags, { traceparent: 'own' })
})
