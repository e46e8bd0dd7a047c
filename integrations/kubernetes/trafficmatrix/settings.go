package trafficmatrix

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"leeward.dev/kubernetes/arguments"
)

// Settings of the plugin.
type Settings struct {
	// Wait is the longest time that a pod waits for the other pods of its app and for the controller; 0 turns waiting off.
	Wait time.Duration
	// Hold is the time for which the controller holds the chosen hosts for pods that are not bound.
	Hold time.Duration
	// Absence is the time after which a matrix that no pod belongs to is reported.
	Absence time.Duration
}

// Defaults and bounds of [Settings].
const (
	DefaultWait    = 5 * time.Second
	mostWait       = time.Minute
	DefaultHold    = time.Minute
	mostHold       = time.Hour
	DefaultAbsence = 10 * time.Minute
	mostAbsence    = 24 * time.Hour
)

// Args are the arguments of the plugin, in pluginConfig of the scheduler's configuration.
type Args struct {
	metav1.TypeMeta `json:",inline"`
	arguments.Service
	// Wait, Hold and Absence are those of [Settings].
	Wait    *metav1.Duration `json:"wait,omitempty"`
	Hold    *metav1.Duration `json:"hold,omitempty"`
	Absence *metav1.Duration `json:"absence,omitempty"`
}

// readArgs returns the arguments of a configuration.
func readArgs(object runtime.Object) (Args, error) {
	var args Args
	if err := arguments.Decode(object, &args); err != nil {
		return Args{}, fmt.Errorf("%s: arguments: %w", Name, err)
	}
	return args, nil
}

// settings returns those of the plugin, with defaults.
func (a *Args) settings() Settings {
	settings := Settings{Wait: DefaultWait, Hold: DefaultHold, Absence: DefaultAbsence}
	if a.Wait != nil {
		settings.Wait = a.Wait.Duration
	}
	if a.Hold != nil {
		settings.Hold = a.Hold.Duration
	}
	if a.Absence != nil {
		settings.Absence = a.Absence.Duration
	}
	return settings
}

// check returns an error that names an invalid setting.
func (s Settings) check() error {
	if s.Wait < 0 || s.Wait > mostWait {
		return fmt.Errorf("%s: wait: %v: expected 0s to %v", Name, s.Wait, mostWait)
	}
	if s.Hold < time.Second || s.Hold > mostHold {
		return fmt.Errorf("%s: hold: %v: expected 1s to %v", Name, s.Hold, mostHold)
	}
	if s.Absence < time.Second || s.Absence > mostAbsence {
		return fmt.Errorf("%s: absence: %v: expected 1s to %v", Name, s.Absence, mostAbsence)
	}
	return nil
}
