// OpenTelemetry, if the program has it: the span of the producer goes with the job as the tag
// `traceparent`, and is the parent of the run. The API is found where it registers itself, so this
// package does not depend on it.
import type { AddOptions } from './words.js'

const API = Symbol.for('opentelemetry.js.api.1')
export const TRACEPARENT = 'traceparent'

interface Carrier {
  [header: string]: string
}

interface Propagation {
  inject(context: unknown, carrier: Carrier, setter: object): void
  extract(context: unknown, carrier: Carrier, getter: object): unknown
}

interface ContextManager {
  active(): unknown
  with<T>(context: unknown, run: () => T): T
}

const setter = {
  set(carrier: Carrier, name: string, value: string): void {
    carrier[name] = value
  },
}
const getter = {
  get: (carrier: Carrier, name: string): string | undefined => carrier[name],
  keys: (carrier: Carrier): string[] => Object.keys(carrier),
}

interface Globals {
  [API]?: { propagation?: Propagation, context?: ContextManager }
}

function registered(): { propagation: Propagation, context: ContextManager } | null {
  const api = (globalThis as Globals)[API]
  if (api?.propagation === undefined || api.context === undefined) return null
  return { propagation: api.propagation, context: api.context }
}

/** Whether OpenTelemetry is set up in this process. */
export function hasTracing(): boolean {
  return registered() !== null
}

/** The options with the tag, unless they have one or there is no span. */
export function withTraceparent(options: AddOptions): AddOptions {
  const api = registered()
  if (api === null || options.tags?.[TRACEPARENT] !== undefined) return options
  const carrier: Carrier = {}
  api.propagation.inject(api.context.active(), carrier, setter)
  const traceparent = carrier[TRACEPARENT]
  return traceparent === undefined
    ? options
    : { ...options, tags: { ...options.tags, [TRACEPARENT]: traceparent } }
}

/** Runs it as a part of the trace that the job's tag names. */
export function inTrace<T>(tags: Readonly<Record<string, string>>, run: () => T): T {
  const api = registered()
  const traceparent = tags[TRACEPARENT]
  if (api === null || traceparent === undefined) return run()
  const parent = api.propagation.extract(api.context.active(), { traceparent }, getter)
  return api.context.with(parent, run)
}
