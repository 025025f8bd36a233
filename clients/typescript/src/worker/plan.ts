// What a worker sends next. No I/O: the worker asks again whenever something has changed.

/** What the worker is doing. */
export interface View {
  /** Whether it takes jobs at all: not if it drains. */
  readonly accepting: boolean
  /** Runs that may begin. */
  readonly free: number
  /** Jobs that may still be taken (`maxJobs`). */
  readonly left: number
  /** A pop was sent whose reply is not known: there is never a second one. */
  readonly popping: boolean
  /** Ends are being told: those that come meanwhile are told together. */
  readonly settling: boolean
  /** Runs that have ended and are not told. */
  readonly ended: number
  /** An acknowledgement is among them, and the worker has one queue: the pop can go with it. */
  readonly carriesPop: boolean
}

export interface Plan {
  /** Tell the ends now, with a pop of that many jobs in it; 0: without. */
  readonly settle: { readonly count: number } | null
  /** Pop that many jobs on the connection that blocks; 0: none. */
  readonly pop: number
}

export const MOST_JOBS = 256

export function planNext(view: View): Plan {
  const wanted = view.accepting && !view.popping ? Math.min(view.free, view.left, MOST_JOBS) : 0
  if (view.ended > 0 && !view.settling) {
    return view.carriesPop ? { settle: { count: wanted }, pop: 0 }
      : { settle: { count: 0 }, pop: wanted }
  }
  return { settle: null, pop: wanted }
}
