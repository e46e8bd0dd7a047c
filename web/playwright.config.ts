import { defineConfig } from '@playwright/test'

/** Browser of the system; Playwright downloads none. */
const executablePath = process.env['CHROMIUM'] ?? '/usr/bin/chromium'

export default defineConfig({
  testDir: 'e2e',
  forbidOnly: true,
  workers: 2,
  // Long timeouts, because the machine may be busy.
  timeout: 300_000,
  expect: { timeout: 30_000 },
  reporter: 'line',
  use: {
    viewport: { width: 1280, height: 720 },
    locale: 'en-GB',
    timezoneId: 'UTC',
    // Containers have little shared memory (`--disable-dev-shm-usage`).
    launchOptions: {
      executablePath,
      args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--font-render-hinting=none'],
    },
  },
  projects: [
    { name: 'light', testIgnore: ['real/**', 'pictures.spec.ts'], use: { colorScheme: 'light' } },
    {
      name: 'dark',
      testIgnore: ['real/**', 'pictures.spec.ts'],
      grep: /@both/,
      use: { colorScheme: 'dark' },
    },
    { name: 'real', testMatch: 'real/*.spec.ts', use: { colorScheme: 'light' } },
    { name: 'pictures', testMatch: process.env['PICTURES'] ? 'pictures.spec.ts' : [] },
  ],
})
