import { defineConfig } from '@playwright/test'

/** The system's browser; none is downloaded. */
const executablePath = process.env['CHROMIUM'] ?? '/usr/bin/chromium'

export default defineConfig({
  testDir: 'e2e',
  forbidOnly: true,
  workers: 1,
  // As on a machine that does much else meanwhile.
  timeout: 120_000,
  expect: { timeout: 15_000 },
  reporter: 'line',
  use: {
    viewport: { width: 1280, height: 720 },
    locale: 'en-GB',
    timezoneId: 'UTC',
    launchOptions: { executablePath, args: ['--no-sandbox', '--disable-gpu', '--font-render-hinting=none'] },
  },
  projects: [
    { name: 'light', use: { colorScheme: 'light' } },
    { name: 'dark', use: { colorScheme: 'dark' } },
  ],
})
