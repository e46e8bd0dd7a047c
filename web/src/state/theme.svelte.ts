import type { Theme } from '../logic/colour'

export type Choice = 'system' | Theme
const KEY = 'leeward-theme'
const NEXT: Record<Choice, Choice> = { system: 'light', light: 'dark', dark: 'system' }

/** Light or dark theme: the system's, or the reader's choice, which `localStorage` keeps. */
class ThemeState {
  choice = $state<Choice>('system')
  private system = $state<Theme>('light')
  readonly current: Theme = $derived(this.choice === 'system' ? this.system : this.choice)

  constructor() {
    const query = matchMedia('(prefers-color-scheme: dark)')
    const read = () => (this.system = query.matches ? 'dark' : 'light')
    read()
    query.addEventListener('change', read)
    const stored = localStorage.getItem(KEY)
    if (stored === 'light' || stored === 'dark') this.set(stored)
  }

  next(): void {
    this.set(NEXT[this.choice])
  }

  private set(choice: Choice): void {
    this.choice = choice
    if (choice === 'system') {
      localStorage.removeItem(KEY)
      delete document.documentElement.dataset['theme']
    } else {
      localStorage.setItem(KEY, choice)
      document.documentElement.dataset['theme'] = choice
    }
  }
}

export const theme = new ThemeState()
