// A handler for sluice-worker: the payload says what it does.
import { writeFileSync } from 'node:fs'
import type { Handler } from '../../src/index.js'

interface Task {
  do: 'echo' | 'sleep' | 'obey' | 'hang' | 'throw' | 'exit' | 'stray'
  ms?: number
  file?: string
}

const handler: Handler<Task, unknown> = async ({ payload }, { signal }) => {
  if (payload.file !== undefined) writeFileSync(payload.file, '1', { flag: 'a' })
  const end = new Promise((resolve) => setTimeout(resolve, payload.ms ?? 0))
  if (payload.do === 'throw') throw new Error('thrown')
  if (payload.do === 'exit') process.exit(139)
  if (payload.do === 'hang') await new Promise(() => undefined)
  if (payload.do === 'sleep') await end
  if (payload.do === 'obey') {
    await Promise.race([end, new Promise((resolve) => signal.addEventListener('abort', resolve))])
    signal.throwIfAborted()
  }
  // A connection or timer that is left behind must not keep the process.
  if (payload.do === 'stray') setInterval(() => undefined, 1000)
  return payload.do
}

export default handler
