package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/remote"
)

const (
	defaultSchema = "varve"
	usage         = "postgres://USER@HOST:PORT/DATABASE?schema=NAME"
	mostName      = 63 // bytes of a name in PostgreSQL; longer ones are cut off silently
)

// Options name a place in a database, and how to reach it.
type Options struct {
	User     string // empty: PGUSER, otherwise the user of the operating system
	Hosts    string // HOST or HOST:PORT, several separated by commas; empty with Socket
	Socket   string // folder of the server's Unix socket
	Database string
	Schema   string // empty: varve
	// SSLMode is disable, require, verify-ca or verify-full; empty: disable on this machine, otherwise verify-full.
	SSLMode string
	// SSLRootCert is a file with the certificates that are trusted instead of the system's; SSLCert and SSLKey are
	// files with a certificate of the client.
	SSLRootCert, SSLCert, SSLKey string

	Sleep  func(ctx context.Context, d time.Duration) error
	Random io.Reader
}

// sslFiles returns the parameters of the URL whose values are paths of files, with pointers to the options that have
// these values.
func (o *Options) sslFiles() map[string]*string {
	return map[string]*string{"sslrootcert": &o.SSLRootCert, "sslcert": &o.SSLCert, "sslkey": &o.SSLKey}
}

// ParseURL returns the place that a URL names: postgres://USER@HOST:PORT/DATABASE?schema=NAME&sslmode=MODE. Other
// parameters are sslrootcert, sslcert, sslkey, and host with the folder of a Unix socket. A password in the URL is
// refused.
func ParseURL(text string) (*Options, error) {
	invalid := func(format string, args ...any) (*Options, error) {
		return nil, fmt.Errorf("%w: %s", errs.ErrInvalid, fmt.Sprintf(format, args...))
	}
	u, err := url.Parse(text)
	if err != nil { // its message has the URL, and the URL may have a password
		return invalid("not a URL -> " + usage)
	}
	if _, has := u.User.Password(); has {
		return invalid("a password in a URL ends up in histories and logs -> set PGPASSWORD, or write it to ~/.pgpass")
	}
	o := &Options{User: u.User.Username(), Hosts: u.Host, Database: strings.TrimPrefix(u.Path, "/")}
	if u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Fragment != "" || o.Database == "" ||
		strings.Contains(o.Database, "/") {
		return invalid("the URL is not that of a database -> " + usage)
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return invalid("the parameters of the URL cannot be read -> " + usage)
	}
	files := o.sslFiles()
	for name, values := range q {
		value := values[len(values)-1]
		switch {
		case name == "schema":
			o.Schema = value
		case name == "sslmode":
			if !slices.Contains([]string{"disable", "require", "verify-ca", "verify-full"}, value) {
				return invalid("sslmode=%s is not supported -> use disable, require, verify-ca or verify-full", value)
			}
			o.SSLMode = value
		case name == "host":
			o.Socket = value
		case files[name] != nil:
			*files[name] = value
		default:
			return invalid("%q in the URL is unknown -> schema, sslmode, sslrootcert, sslcert, sslkey, host", name)
		}
	}
	if o.Schema == defaultSchema {
		o.Schema = ""
	}
	switch {
	case (o.Hosts == "") == (o.Socket == ""), o.Socket != "" && !filepath.IsAbs(o.Socket):
		return invalid("the URL needs a host, or the folder of a Unix socket (?host=/run/postgresql) -> " + usage)
	case len(o.Schema) > mostName || strings.ContainsRune(o.Schema, 0) || strings.HasPrefix(o.Schema, "pg_"):
		return invalid("schema %q: a name has at most %d bytes and does not begin with pg_", o.Schema, mostName)
	}
	return o, nil
}

// URL returns the place as a URL, which ParseURL reads.
func (o *Options) URL() string {
	u := url.URL{Scheme: "postgres", Host: o.Hosts, Path: "/" + o.Database}
	if o.User != "" {
		u.User = url.User(o.User)
	}
	q := url.Values{}
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	set("schema", o.Schema)
	set("sslmode", o.SSLMode)
	set("host", o.Socket)
	for name, value := range o.sslFiles() {
		set(name, *value)
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// local reports whether all hosts are names or addresses of this machine's loopback interface. It also returns true if
// the connection uses a Unix socket.
func (o *Options) local() bool {
	for host := range strings.SplitSeq(o.Hosts, ",") {
		name := host
		if h, _, err := net.SplitHostPort(host); err == nil {
			name = h
		}
		name = strings.Trim(name, "[]")
		if ip := net.ParseIP(name); name != "" && name != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return false
		}
	}
	return true
}

// config returns the configuration of connections. It sets every value that the URL determines, so that environment
// variables, and the files that they name, cannot change these values. Only passwords come from the environment or
// from the password file.
func (o *Options) config() (*pgx.ConnConfig, error) {
	if err := checkPasswordFile(); err != nil {
		return nil, err
	}
	q := url.Values{"sslmode": {o.SSLMode}, "target_session_attrs": {"any"}, "connect_timeout": {"10"},
		"application_name": {"varve"}}
	if o.SSLMode == "" {
		q.Set("sslmode", "verify-full")
		if o.local() {
			q.Set("sslmode", "disable")
		}
	}
	if o.Socket != "" {
		q.Set("host", o.Socket)
	}
	for name, value := range o.sslFiles() {
		if *value != "" {
			q.Set(name, *value)
		}
	}
	u := url.URL{Scheme: "postgres", Host: o.Hosts, Path: "/" + o.Database, RawQuery: q.Encode()}
	if o.User != "" {
		u.User = url.User(o.User)
	}
	c, err := pgx.ParseConfig(u.String())
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errs.ErrInvalid, o.URL(), err)
	}
	c.DefaultQueryExecMode = pgx.QueryExecModeExec // no prepared statement stays in the connection
	c.StatementCacheCapacity, c.DescriptionCacheCapacity = 0, 0
	return c, nil
}

// checkPasswordFile returns an error if other users may read a file with passwords. The database driver itself does not
// check the mode of the file.
func checkPasswordFile() error {
	file := os.Getenv("PGPASSFILE")
	if file == "" {
		if home, err := os.UserHomeDir(); err == nil {
			file = filepath.Join(home, ".pgpass")
		}
	}
	st, err := os.Stat(file)
	if os.Getenv("PGPASSWORD") != "" || err != nil {
		return nil
	}
	return remote.CheckMode(file, st.Mode())
}

// Remote is a remote.Remote that keeps the copy of a store in a schema of a PostgreSQL database.
type Remote struct {
	o      Options
	config *pgx.ConnConfig
	schema string // quoted
	id     uuid.UUID

	mu     sync.Mutex
	idle   []*session
	closed bool
}

var _ remote.Remote = (*Remote)(nil)

// Open opens the remote at a place. If the place has no remote, the error matches remote.ErrNoRemote, and nothing is
// created.
func Open(ctx context.Context, o Options) (*Remote, error) {
	r, err := connect(o)
	if err != nil {
		return nil, err
	}
	if err := r.suitable(ctx); err != nil {
		return nil, r.closeWith(err)
	}
	err = r.transact(ctx, "opening", noLock, func(_ context.Context, _ *pgx.Conn, s *state) error {
		r.id = s.id
		return nil
	})
	if err != nil {
		return nil, r.closeWith(err)
	}
	return r, nil
}

// connect returns a Remote. It does not connect to the server yet.
func connect(o Options) (*Remote, error) {
	if o.Sleep == nil {
		o.Sleep = vfs.Sleep
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	c, err := o.config()
	if err != nil {
		return nil, err
	}
	name := o.Schema
	if name == "" {
		name = defaultSchema
	}
	return &Remote{o: o, config: c, schema: pgx.Identifier{name}.Sanitize()}, nil
}

func (r *Remote) closeWith(err error) error {
	_ = r.Close()
	return err
}

// ID returns the ID of the remote, as the schema of the remote records it.
func (r *Remote) ID() uuid.UUID { return r.id }

// Place returns the URL of the place, which has no password.
func (r *Remote) Place() string { return r.o.URL() }

// Close closes the connections that no call is using. Each other connection is closed when the call that uses it ends.
func (r *Remote) Close() error {
	r.mu.Lock()
	idle := r.idle
	r.idle, r.closed = nil, true
	r.mu.Unlock()
	for _, s := range idle {
		s.close()
	}
	return nil
}
