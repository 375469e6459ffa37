package s3_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/remote/remotetest"
	"github.com/varve-db/varve/remote/s3"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRemote(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"laptop/notes", ""} {
		t.Run("prefix="+prefix, func(t *testing.T) {
			remotetest.Run(t, func(t *testing.T) func() remote.Remote {
				b := newBucket(t)
				b.create(prefix)
				return func() remote.Remote { return b.open(prefix) }
			})
		})
	}
}

func TestParseURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]s3.Options{
		"s3://b":      {Bucket: "b"},
		"s3://b/a/c/": {Bucket: "b", Prefix: "a/c"},
		"s3://b/p?endpoint=host:9000&region=eu-west-1": {Bucket: "b", Prefix: "p", Endpoint: "host:9000",
			Region: "eu-west-1"},
		"s3://b/p?endpoint=http://127.0.0.1:9000": {Bucket: "b", Prefix: "p", Endpoint: "127.0.0.1:9000",
			NoTLS: true},
		"s3://b/p?endpoint=https://x.example/&tls=on": {Bucket: "b", Prefix: "p", Endpoint: "x.example"},
		"s3://b/p%20q?endpoint=127.0.0.1:9000&tls=off": {Bucket: "b", Prefix: "p q", Endpoint: "127.0.0.1:9000",
			NoTLS: true},
	} {
		got, err := s3.ParseURL(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: %+v, want %+v", text, *got, want)
		}
		if again, err := s3.ParseURL(got.URL()); err != nil || !reflect.DeepEqual(*again, want) {
			t.Errorf("%s, written as %s: %+v, %v", text, got.URL(), again, err)
		}
	}
	for _, text := range []string{"", "s3://", "s3:///x", "http://b/p", "s3://b?colour=red", "s3://b?tls=maybe",
		"s3://id:secret@b/p", "s3://b?endpoint=a/b", "s3://b/p#x", "s3://b?endpoint=id:secret@host", "s3://%zz",
		"https://b?secret_key=secret", "s3://key:123/secret@bucket", "s3://b?endpoint=%zz&x=secret"} {
		if _, err := s3.ParseURL(text); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%s: %v", text, err)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the message has the secret: %v", text, err)
		}
	}
}
