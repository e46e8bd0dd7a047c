package snapshot

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"
)

// Settings describe how a follower reaches the controller.
type Settings struct {
	// Controllers are the addresses of the controller, such as https://leeward:7600. After a failure the next request goes
	// to the next address. At least one is required.
	Controllers []string
	// TokenFile is a file with the bearer token. The file is read for each request, so a new token needs no restart.
	// Without it, requests have the token BearerToken, or none.
	TokenFile, BearerToken string
	// AuthorityFile is a PEM file of certificates to which the controller's certificate must lead. Without it, those of the
	// system count.
	AuthorityFile string
	// Interval is the time between two snapshots, 100 ms to 1 min; 1 s by default.
	Interval time.Duration
	// Deadline is the time for an answer beyond the interval that the controller waits for, 10 ms to 1 min; 200 ms by
	// default. A whole snapshot has ten times as much.
	Deadline time.Duration
	// MaxAge is the age from which a snapshot no longer counts; 5 s by default. It is at least the time in which the
	// follower must have noticed a late answer: twice the interval, and the deadline.
	MaxAge time.Duration
	// Windows is true if snapshots also have the last window of each link, and say which loads are sums, as far as the service
	// sends it. A difference then has about a third more bytes.
	Windows bool
}

// Defaults of [Settings].
const (
	DefaultInterval = time.Second
	DefaultDeadline = 200 * time.Millisecond
	DefaultMaxAge   = 5 * time.Second
)

// WithDefaults returns the settings with the default of each missing one, or an error that names an invalid one.
func (s Settings) WithDefaults() (Settings, error) {
	setDefault(&s.Interval, DefaultInterval)
	setDefault(&s.Deadline, DefaultDeadline)
	setDefault(&s.MaxAge, DefaultMaxAge)
	if len(s.Controllers) == 0 {
		return s, fmt.Errorf("controllers: none: expected at least one address such as https://leeward:7600")
	}
	addresses := make([]string, 0, len(s.Controllers))
	for _, address := range s.Controllers {
		at, err := url.Parse(address)
		valid := err == nil && (at.Scheme == "http" || at.Scheme == "https") && at.Host != "" && at.User == nil &&
			strings.Trim(at.Path, "/") == "" && at.RawQuery == "" && at.Fragment == ""
		if !valid {
			return s, fmt.Errorf("controllers: %q: expected an address such as https://leeward:7600", address)
		}
		addresses = append(addresses, at.Scheme+"://"+at.Host)
	}
	s.Controllers = addresses
	if err := between("interval", s.Interval, 100*time.Millisecond, time.Minute); err != nil {
		return s, err
	}
	if err := between("deadline", s.Deadline, 10*time.Millisecond, time.Minute); err != nil {
		return s, err
	}
	if err := between("max age", s.MaxAge, s.differenceDeadline(), time.Hour); err != nil {
		return s, err
	}
	return s, nil
}

func setDefault(value *time.Duration, standard time.Duration) {
	if *value == 0 {
		*value = standard
	}
}

func between(name string, value, least, most time.Duration) error {
	if value < least || value > most {
		return fmt.Errorf("%s: %v: expected %v to %v", name, value, least, most)
	}
	return nil
}

// differenceDeadline is the time for a difference. It comes after the interval, and in a network without any change after
// the wait.
func (s Settings) differenceDeadline() time.Duration { return 2*s.Interval + s.Deadline }

// wholeDeadline is the time for a whole snapshot, which is longer than a difference.
func (s Settings) wholeDeadline() time.Duration { return 10 * s.Deadline }

// TLS returns the settings of TLS: certificates must lead to those of the file.
func (s Settings) TLS() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.AuthorityFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(s.AuthorityFile)
	if err != nil {
		return nil, fmt.Errorf("authority: %w", err)
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("authority: %s: no certificates: expected a PEM file", s.AuthorityFile)
	}
	return config, nil
}

// Token returns the token of the file, or that of the settings; empty without both.
func (s Settings) Token() (string, error) {
	token, origin := s.BearerToken, "the given one"
	if s.TokenFile != "" {
		text, err := os.ReadFile(s.TokenFile)
		if err != nil {
			return "", fmt.Errorf("token: %w", err)
		}
		token, origin = string(text), s.TokenFile
	} else if token == "" {
		return "", nil
	}
	token = strings.TrimSpace(token)
	printable := strings.IndexFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) < 0
	if token == "" || !printable {
		return "", fmt.Errorf("token: %s: expected one line of printable characters", origin)
	}
	return token, nil
}
