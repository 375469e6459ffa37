package postgres_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/remote/postgres"
	"github.com/varve-db/varve/remote/remotetest"
)

func TestRemote(t *testing.T) {
	s := shared.get(t)
	t.Setenv("PGPASSWORD", password)
	for _, schema := range []string{"", `odd "name"; %`} {
		t.Run("schema="+schema, func(t *testing.T) {
			remotetest.Run(t, func(t *testing.T) func() remote.Remote {
				o := s.options(s.database(t, ""), schema)
				create(t, o)
				return func() remote.Remote { return open(t, o) }
			})
		})
	}
}

func TestParseURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]postgres.Options{
		"postgres://db.example/copies":                   {Hosts: "db.example", Database: "copies"},
		"postgresql://me@db.example:6432/c?schema=varve": {User: "me", Hosts: "db.example:6432", Database: "c"},
		"postgres://me@a:1,b:2/c?schema=my%20notes":      {User: "me", Hosts: "a:1,b:2", Database: "c", Schema: "my notes"},
		"postgres://me@[::1]:5/c?sslmode=require":        {User: "me", Hosts: "[::1]:5", Database: "c", SSLMode: "require"},
		"postgres://me@/c?host=/run/postgresql":          {User: "me", Socket: "/run/postgresql", Database: "c"},
		"postgres://db/c?sslrootcert=/a/ca.pem&sslkey=/k": {Hosts: "db", Database: "c",
			SSLRootCert: "/a/ca.pem", SSLKey: "/k"},
	} {
		got, err := postgres.ParseURL(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: %+v, want %+v", text, *got, want)
		}
		if again, err := postgres.ParseURL(got.URL()); err != nil || !reflect.DeepEqual(*again, want) {
			t.Errorf("%s, written as %s: %+v, %v", text, got.URL(), again, err)
		}
	}
	for _, text := range []string{"", "postgres://", "postgres:///c", "postgres://h", "postgres://h/", "mysql://h/c",
		"postgres://me:secret@h/c", "postgres://h/c?password=secret", "postgres://h/c?sslmode=prefer",
		"postgres://h/c?sslmode=allow", "postgres://h/c?schema=pg_catalog", "postgres://h/c#x", "postgres://%zz",
		"postgres://h/c?host=/run", "postgres:///c?host=run", "postgres://h/c/d", "postgres://h/c?x=%zz&y=secret",
		"postgres://h/c?schema=" + strings.Repeat("x", 64), "postgres://me:secret@h:port/c"} {
		if _, err := postgres.ParseURL(text); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%s: %v", text, err)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the message has the secret: %v", text, err)
		}
	}
}
