// Package arguments has the arguments that all plugins of the scheduler share, and reads them.
package arguments

import (
	"bytes"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"leeward.dev/kubernetes/snapshot"
)

// Service are the arguments of the connection to the service. A plugin embeds them.
type Service struct {
	// Controllers are the addresses of the service, such as https://leeward:7600. At least one is required.
	Controllers []string `json:"controllers"`
	// TokenFile is a file with a token of the role `place`, or `read` for a plugin that only reads. Without it, requests have
	// no token.
	TokenFile string `json:"tokenFile,omitempty"`
	// AuthorityFile is a PEM file of certificates to which that of the service must lead; those of the system by default.
	AuthorityFile string `json:"authorityFile,omitempty"`
	// Interval is the time between two snapshots, 100 ms to 1 min; 1 s by default.
	Interval metav1.Duration `json:"interval,omitempty"`
	// Deadline is the time for an answer beyond the interval, 10 ms to 1 min; 200 ms by default.
	Deadline metav1.Duration `json:"deadline,omitempty"`
	// MaxAge is the age from which a snapshot no longer counts; 5 s by default.
	MaxAge metav1.Duration `json:"maxAge,omitempty"`
}

// Settings returns those of the client of the service.
func (s *Service) Settings() snapshot.Settings {
	return snapshot.Settings{
		Controllers: s.Controllers, TokenFile: s.TokenFile, AuthorityFile: s.AuthorityFile,
		Interval: s.Interval.Duration, Deadline: s.Deadline.Duration, MaxAge: s.MaxAge.Duration,
	}
}

// Decode reads the arguments of a plugin from its pluginConfig in the scheduler's configuration. A misspelt field is an error,
// so that it does not become a default.
func Decode(configuration runtime.Object, into any) error {
	unknown, ok := configuration.(*runtime.Unknown)
	switch {
	case configuration == nil, ok && len(unknown.Raw) == 0:
		return nil
	case !ok:
		return fmt.Errorf("type %T: expected an object in the configuration of the scheduler", configuration)
	case unknown.ContentType != "" && unknown.ContentType != runtime.ContentTypeJSON:
		return fmt.Errorf("content type %s: expected %s", unknown.ContentType, runtime.ContentTypeJSON)
	}
	decoder := json.NewDecoder(bytes.NewReader(unknown.Raw))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}
