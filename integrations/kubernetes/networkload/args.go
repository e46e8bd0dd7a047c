package networkload

import (
	"bytes"
	"cmp"
	"fmt"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"leeward.dev/kubernetes/arguments"
	"leeward.dev/kubernetes/ledger"
	"leeward.dev/kubernetes/placements"
)

// DefaultClient is the name of the scheduler at the service.
const DefaultClient = "kube-scheduler"

// mostClient is the largest number of characters of the name of a client at the service.
const mostClient = 128

// Args are the arguments of the plugin, in pluginConfig of the scheduler's configuration.
type Args struct {
	metav1.TypeMeta `json:",inline"`
	arguments.Service
	// Client is the name of this scheduler at the service; all replicas of a scheduler share it, and no other has it.
	// [DefaultClient] by default.
	Client string `json:"client,omitempty"`
	// Report is false if placements are not reported to the service. They then count in this scheduler alone.
	Report *bool `json:"report,omitempty"`
	// ReportInterval is the time between two reports of a link to the service, and Alpha the weight of a report; those that the
	// service says by default.
	ReportInterval metav1.Duration `json:"reportInterval,omitempty"`
	Alpha          *float64        `json:"alpha,omitempty"`
	// Peaks is false if measured peaks of workloads do not count. Pods then have the demand of their annotations and limits alone.
	Peaks *bool `json:"peaks,omitempty"`
	// PlacementLasts is the time for which a placement counts that neither a snapshot nor telemetry shows, 10 s to 1 h;
	// 5 min by default.
	PlacementLasts metav1.Duration `json:"placementLasts,omitempty"`
}

// InvalidArgsError says why the arguments are invalid.
type InvalidArgsError struct{ problem error }

// Error returns the name of the plugin and the reason with the field and its value.
func (e *InvalidArgsError) Error() string {
	return fmt.Sprintf("pluginConfig %s: args: %v", Name, e.problem)
}

// Unwrap returns the reason.
func (e *InvalidArgsError) Unwrap() error { return e.problem }

// readArgs returns the arguments of a configuration with their defaults. The error is an [InvalidArgsError].
func readArgs(configuration runtime.Object) (Args, error) {
	var args Args
	err := arguments.Decode(configuration, &args)
	if err == nil {
		err = args.complete()
	}
	if err != nil {
		return Args{}, &InvalidArgsError{problem: err}
	}
	return args, nil
}

// complete sets defaults, and checks the fields that no other constructor checks.
func (a *Args) complete() error {
	if a.Client == "" {
		a.Client = DefaultClient
	}
	isControl := func(c rune) bool { return unicode.IsControl(c) }
	if len(a.Client) > mostClient || bytes.ContainsFunc([]byte(a.Client), isControl) {
		return fmt.Errorf("client: %.200q: expected 1 to %d characters without control characters", a.Client, mostClient)
	}
	if a.PlacementLasts.Duration == 0 {
		a.PlacementLasts.Duration = placements.DefaultLasts
	}
	for _, flag := range [...]**bool{&a.Report, &a.Peaks} {
		if *flag == nil {
			standard := true
			*flag = &standard
		}
	}
	return nil
}

// estimator returns the description of the service's estimator, with the service's own settings where no argument is given.
func (a *Args) estimator(interval time.Duration, alpha float64) (ledger.Estimator, error) {
	if a.Alpha != nil {
		alpha = *a.Alpha
	}
	return ledger.NewEstimator(cmp.Or(a.ReportInterval.Duration, interval), alpha)
}
