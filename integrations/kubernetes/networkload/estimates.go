package networkload

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"leeward.dev/kubernetes/ledger"
)

// The settings of the service are requested every settingsInterval, and after a failure again after settingsPause.
const (
	settingsInterval = time.Minute
	settingsPause    = 5 * time.Second
)

// estimates follows the service's settings of estimates, which change with a restart of the service.
type estimates struct {
	args Args
	call func(ctx context.Context, method, path string, body []byte) ([]byte, error)
	set  func(ledger.Estimator)
	log  *slog.Logger
	// problem is the last one in the log.
	problem string
}

// run asks until the context ends.
func (e *estimates) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(e.step(ctx)):
		}
	}
}

// step asks once, and returns the pause before the next time. After a failure the last settings stay.
func (e *estimates) step(ctx context.Context) time.Duration {
	err := e.ask(ctx)
	if err == nil {
		e.problem = ""
		return settingsInterval
	}
	if problem := err.Error(); problem != e.problem && ctx.Err() == nil {
		e.problem = problem
		e.log.Warn("the settings of estimates are not read; the last ones count", "problem", problem)
	}
	return settingsPause
}

func (e *estimates) ask(ctx context.Context) error {
	body, err := e.call(ctx, http.MethodGet, "/v1/status", nil)
	if err != nil {
		return err
	}
	var status struct {
		Interval float64 `json:"interval_s"`
		Ledger   struct {
			Alpha float64 `json:"alpha"`
		} `json:"ledger"`
	}
	if err := json.Unmarshal(body, &status); err != nil {
		return fmt.Errorf("GET /v1/status: %w", err)
	}
	if status.Interval <= 0 || status.Interval > time.Hour.Seconds() {
		return fmt.Errorf("GET /v1/status: interval_s: %v: expected seconds up to an hour", status.Interval)
	}
	// Earlier versions of the service do not say the weight.
	estimator, err := e.args.estimator(time.Duration(status.Interval*float64(time.Second)), cmp.Or(status.Ledger.Alpha, ledger.DefaultAlpha))
	if err != nil {
		return fmt.Errorf("GET /v1/status: %w", err)
	}
	e.set(estimator)
	return nil
}
