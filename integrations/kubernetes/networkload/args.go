package networkload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"leeward.dev/kubernetes/ledger"
	"leeward.dev/kubernetes/placements"
	"leeward.dev/kubernetes/snapshot"
)

// DefaultClient is the name of the scheduler at the service.
const DefaultClient = "kube-scheduler"

// mostClient is the largest number of characters of the name of a client at the service.
const mostClient = 128

// Args are the arguments of the plugin, in pluginConfig of the scheduler's configuration.
type Args struct {
	metav1.TypeMeta `json:",inline"`
	// Controllers are the addresses of the service, such as https://leeward:7600. At least one is required.
	Controllers []string `json:"controllers"`
	// TokenFile is a file with a token of the role `place`, or `read` without reports. Without it, requests have no token.
	TokenFile string `json:"tokenFile,omitempty"`
	// AuthorityFile is a PEM file of certificates to which that of the service must lead; those of the system by default.
	AuthorityFile string `json:"authorityFile,omitempty"`
	// Interval is the time between two snapshots, 100 ms to 1 min; 1 s by default.
	Interval metav1.Duration `json:"interval,omitempty"`
	// Deadline is the time for an answer beyond the interval, 10 ms to 1 min; 200 ms by default.
	Deadline metav1.Duration `json:"deadline,omitempty"`
	// MaxAge is the age from which a snapshot no longer counts; 5 s by default.
	MaxAge metav1.Duration `json:"maxAge,omitempty"`
	// Client is the name of this scheduler at the service; all replicas of a scheduler share it, and no other has it.
	// [DefaultClient] by default.
	Client string `json:"client,omitempty"`
	// Report is false if placements are not reported to the service. They then count in this scheduler alone.
	Report *bool `json:"report,omitempty"`
	// ReportInterval is the time between two reports of a link to the service, 1 s by default, and Alpha the weight of a
	// report, 0.2 by default. They must be those of the service.
	ReportInterval metav1.Duration `json:"reportInterval,omitempty"`
	Alpha          *float64        `json:"alpha,omitempty"`
	// Peaks is false if measured peaks of workloads do not count. Pods without annotations then have no demand.
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
	args, err := decodeArgs(configuration)
	if err == nil {
		err = args.complete()
	}
	if err != nil {
		return Args{}, &InvalidArgsError{problem: err}
	}
	return args, nil
}

func decodeArgs(configuration runtime.Object) (Args, error) {
	var args Args
	unknown, ok := configuration.(*runtime.Unknown)
	switch {
	case configuration == nil, ok && len(unknown.Raw) == 0:
		return args, nil
	case !ok:
		return args, fmt.Errorf("type %T: expected an object in the configuration of the scheduler", configuration)
	case unknown.ContentType != "" && unknown.ContentType != runtime.ContentTypeJSON:
		return args, fmt.Errorf("content type %s: expected %s", unknown.ContentType, runtime.ContentTypeJSON)
	}
	decoder := json.NewDecoder(bytes.NewReader(unknown.Raw))
	// A misspelt field must not become a default.
	decoder.DisallowUnknownFields()
	return args, decoder.Decode(&args)
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
	setDefault(&a.ReportInterval, ledger.DefaultInterval)
	setDefault(&a.PlacementLasts, placements.DefaultLasts)
	if a.Alpha == nil {
		alpha := ledger.DefaultAlpha
		a.Alpha = &alpha
	}
	for _, flag := range [...]**bool{&a.Report, &a.Peaks} {
		if *flag == nil {
			standard := true
			*flag = &standard
		}
	}
	return nil
}

func setDefault(value *metav1.Duration, standard time.Duration) {
	if value.Duration == 0 {
		value.Duration = standard
	}
}

// settings returns those of the client of the service.
func (a *Args) settings() snapshot.Settings {
	return snapshot.Settings{
		Controllers: a.Controllers, TokenFile: a.TokenFile, AuthorityFile: a.AuthorityFile,
		Interval: a.Interval.Duration, Deadline: a.Deadline.Duration, MaxAge: a.MaxAge.Duration,
	}
}
