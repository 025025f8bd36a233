// Parts of the page whose routes the server does not have yet.
export const OFFERED = { history: false, dependents: false, selections: false, rules: false,
  trial: false };
