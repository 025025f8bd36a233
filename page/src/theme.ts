// Dark, light, or as the system.
export type Theme = "auto" | "light" | "dark";

const KEY = "sluice-theme";
const listeners = new Set<() => void>();
const system = matchMedia("(prefers-color-scheme: dark)");

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "auto";
  } catch {
    return "auto";
  }
}

let theme: Theme = stored();

function apply(): void {
  const dark = theme === "dark" || (theme === "auto" && system.matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  for (const listener of listeners) listener();
}

export function current_theme(): Theme {
  return theme;
}

export function next_theme(): Theme {
  theme = theme === "auto" ? (system.matches ? "light" : "dark") : theme === "dark" ? "light"
    : "dark";
  // The system's own theme needs no explicit choice.
  if ((theme === "dark") === system.matches) theme = "auto";
  try {
    if (theme === "auto") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // The choice then only applies to this page.
  }
  apply();
  return theme;
}

export function on_theme(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function start_theme(): void {
  system.addEventListener("change", apply);
  apply();
}

// A colour of app.css.
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
