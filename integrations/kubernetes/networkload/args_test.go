package networkload

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestAnInvalidArgumentHasAnErrorWithItsNameAndValue(t *testing.T) {
	for _, c := range []struct{ args, expected string }{
		{`{}`, "controllers: none"},
		{`{"controllers": ["leeward:7600"]}`, `controllers: "leeward:7600"`},
		{`{"controllers": ["http://a"], "interval": "1ms"}`, "interval: 1ms"},
		{`{"controllers": ["http://a"], "deadline": "1h"}`, "deadline: 1h0m0s"},
		{`{"controllers": ["http://a"], "maxAge": "1s"}`, "max age: 1s"},
		{`{"controllers": ["http://a"], "interval": "soon"}`, "soon"},
		{`{"controllers": ["http://a"], "alpha": 0}`, "alpha: 0"},
		{`{"controllers": ["http://a"], "alpha": 1.5}`, "alpha: 1.5"},
		{`{"controllers": ["http://a"], "reportInterval": "-1s"}`, "interval: -1s"},
		{`{"controllers": ["http://a"], "placementLasts": "1s"}`, "lasts: 1s"},
		{`{"controllers": ["http://a"], "client": "a\nb"}`, `client: "a\nb"`},
		{`{"controllers": ["http://a"], "client": "` + strings.Repeat("a", 129) + `"}`, "client: "},
		{`{"controllers": ["http://a"], "authorityFile": "/nowhere"}`, "/nowhere"},
		{`{"controllers": ["http://a"], "controler": "http://b"}`, "controler"},
		{`{"controllers": "http://a"}`, "controllers"},
		{`[]`, "array"},
		{`{`, "EOF"},
	} {
		s := &scene{t: t, clock: time.Now, handle: newHandle()}
		_, err := s.environment().New(t.Context(), &runtime.Unknown{Raw: []byte(c.args)}, s.handle)
		var invalid *InvalidArgsError
		if !errors.As(err, &invalid) {
			t.Errorf("%s: %v", c.args, err)
			continue
		}
		if text := err.Error(); !strings.HasPrefix(text, "pluginConfig NetworkLoad: args: ") || !strings.Contains(text, c.expected) {
			t.Errorf("%s: %s: expected %s", c.args, text, c.expected)
		}
	}
}

func TestAConfigurationOfAnotherTypeIsAnError(t *testing.T) {
	s := &scene{t: t, clock: time.Now, handle: newHandle()}
	for _, configuration := range []runtime.Object{
		nil, &corev1.Pod{}, &runtime.Unknown{Raw: []byte("a: b"), ContentType: runtime.ContentTypeYAML},
	} {
		var invalid *InvalidArgsError
		if _, err := s.environment().New(t.Context(), configuration, s.handle); !errors.As(err, &invalid) {
			t.Errorf("%T: %v", configuration, err)
		}
	}
}

func TestMissingArgumentsHaveDefaults(t *testing.T) {
	args, err := readArgs(&runtime.Unknown{Raw: []byte(`{"controllers": ["http://a"], "kind": "NetworkLoadArgs"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if args.Client != DefaultClient || !*args.Report || !*args.Peaks || args.Alpha != nil || args.ReportInterval.Duration != 0 ||
		args.PlacementLasts.Duration != 5*time.Minute {
		t.Errorf("%+v", args)
	}
}
