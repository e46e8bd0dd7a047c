package trafficmatrix

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"leeward.dev/kubernetes/snapshot"
)

// Settings of the plugin.
type Settings struct {
	// Wait is the longest time that a pod waits for the other pods of its app and for the controller; 0 turns waiting off.
	Wait time.Duration
	// Hold is the time for which the controller holds the chosen hosts for pods that are not bound.
	Hold time.Duration
}

// Defaults and bounds of [Settings].
const (
	DefaultWait = 5 * time.Second
	mostWait    = time.Minute
	DefaultHold = time.Minute
	mostHold    = time.Hour
)

// Args are the arguments of the plugin in pluginConfig of the scheduler's configuration. The first six are those of the plugin
// NetworkLoad.
type Args struct {
	metav1.TypeMeta `json:",inline"`
	// Controllers are the addresses of the service, such as https://leeward:7600. At least one is required.
	Controllers []string `json:"controllers"`
	// TokenFile is a file with a token of the role place. Without it, requests have no token.
	TokenFile string `json:"tokenFile,omitempty"`
	// AuthorityFile is a PEM file of certificates to which that of the service must lead; those of the system by default.
	AuthorityFile string `json:"authorityFile,omitempty"`
	// Interval, Deadline and MaxAge are those of snapshots, with the defaults of package snapshot.
	Interval metav1.Duration `json:"interval,omitempty"`
	Deadline metav1.Duration `json:"deadline,omitempty"`
	MaxAge   metav1.Duration `json:"maxAge,omitempty"`
	// Wait and Hold are those of [Settings].
	Wait *metav1.Duration `json:"wait,omitempty"`
	Hold *metav1.Duration `json:"hold,omitempty"`
}

// readArgs returns the arguments of a configuration. A misspelt field is an error, so that it does not become a default.
func readArgs(object runtime.Object) (Args, error) {
	var args Args
	unknown, ok := object.(*runtime.Unknown)
	switch {
	case object == nil, ok && len(unknown.Raw) == 0:
		return args, nil
	case !ok:
		return args, fmt.Errorf("%s: arguments of type %T: expected an object in the scheduler's configuration", Name, object)
	}
	decoder := json.NewDecoder(bytes.NewReader(unknown.Raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&args); err != nil {
		return args, fmt.Errorf("%s: arguments: %w", Name, err)
	}
	return args, nil
}

// settings returns those of the plugin, with defaults.
func (a *Args) settings() Settings {
	settings := Settings{Wait: DefaultWait, Hold: DefaultHold}
	if a.Wait != nil {
		settings.Wait = a.Wait.Duration
	}
	if a.Hold != nil {
		settings.Hold = a.Hold.Duration
	}
	return settings
}

// controller returns the settings of the client of the service.
func (a *Args) controller() snapshot.Settings {
	return snapshot.Settings{
		Controllers: a.Controllers, TokenFile: a.TokenFile, AuthorityFile: a.AuthorityFile,
		Interval: a.Interval.Duration, Deadline: a.Deadline.Duration, MaxAge: a.MaxAge.Duration,
	}
}

// check returns an error that names an invalid setting.
func (s Settings) check() error {
	if s.Wait < 0 || s.Wait > mostWait {
		return fmt.Errorf("%s: wait: %v: expected 0s to %v", Name, s.Wait, mostWait)
	}
	if s.Hold < time.Second || s.Hold > mostHold {
		return fmt.Errorf("%s: hold: %v: expected 1s to %v", Name, s.Hold, mostHold)
	}
	return nil
}
