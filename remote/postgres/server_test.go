package postgres_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-db/varve/remote/postgres"
)

// program returns the path of a program of PostgreSQL. Debian keeps the programs of a server out of PATH.
func program(t testing.TB, name string) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	sort.Strings(found)
	if path, err := exec.LookPath(name); err == nil && len(found) == 0 {
		found = append(found, path)
	}
	if len(found) > 0 {
		return found[len(found)-1]
	}
	why := name + " is not there; on Debian: apt-get install postgresql"
	if os.Getenv("VARVE_CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
	return ""
}

const password = "correct horse"

// server is a PostgreSQL server of the tests.
type server struct {
	t         testing.TB
	dir       string // what the server owns
	port      int
	args      []string
	databases atomic.Int64

	cmd  *exec.Cmd
	out  *bytes.Buffer
	gone chan struct{}
}

// newServer makes a server that ends with the test.
func newServer(t testing.TB, args ...string) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir(), args: args}
	t.Cleanup(s.kill)
	s.init(t)
	s.start(t)
	return s
}

// shared is one server for all tests that do not stop or configure it.
var shared sharedServer

type sharedServer struct {
	once sync.Once
	s    *server
}

// get returns the shared server.
func (s *sharedServer) get(t testing.TB) *server {
	t.Helper()
	program(t, "initdb")
	s.once.Do(func() {
		dir, err := os.MkdirTemp("", "varve-postgres")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		s.s = &server{dir: dir}
		s.s.init(t)
		s.s.start(t)
	})
	if s.s == nil || s.s.cmd == nil {
		t.Fatal("the server did not start; see the first test that failed")
	}
	return s.s
}

// stop ends the shared server.
func (s *sharedServer) stop() {
	if s.s != nil {
		s.s.kill()
		os.RemoveAll(s.s.dir)
	}
}

// init makes the files of the server.
func (s *server) init(t testing.TB) {
	t.Helper()
	for dir := s.dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	own(t, s.dir)
	pw := filepath.Join(s.dir, "pw")
	if err := os.WriteFile(pw, []byte(password), 0o644); err != nil {
		t.Fatal(err)
	}
	uid, gid := unprivileged()
	cmd := exec.Command(program(t, "initdb"), "-D", filepath.Join(s.dir, "data"), "-U", "varve", "-A", "scram-sha-256",
		"--pwfile", pw, "--no-sync", "-E", "UTF8", "--locale=C")
	cmd.Dir, cmd.SysProcAttr = s.dir, as(uid, gid)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	l.Close()
}

// start starts the server and waits until it answers.
func (s *server) start(t testing.TB) {
	t.Helper()
	uid, gid := unprivileged()
	args := append([]string{"-D", filepath.Join(s.dir, "data"), "-p", fmt.Sprint(s.port), "-c",
		"listen_addresses=127.0.0.1", "-c", "unix_socket_directories=" + s.dir, "-c",
		"max_connections=200", "-c", "shared_buffers=32MB"}, s.args...)
	s.cmd, s.out, s.gone = exec.Command(program(t, "postgres"), args...), &bytes.Buffer{}, make(chan struct{})
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr, s.cmd.SysProcAttr = s.dir, s.out, s.out, as(uid, gid)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd, gone := s.cmd, s.gone
	go func() { _ = cmd.Wait(); close(gone) }()
	deadline := time.Now().Add(time.Minute)
	for {
		c, err := pgx.Connect(t.Context(), s.admin("postgres"))
		if err == nil {
			c.Close(t.Context())
			return
		}
		select {
		case <-s.gone:
			t.Fatalf("the server ended: %s", s.out)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("the server does not answer: %v\n%s", err, s.out)
		}
	}
}

// kill ends the server without a checkpoint: its processes end at once, and what was not flushed is lost with them.
func (s *server) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(syscall.SIGQUIT)
		if runtime.GOOS == "windows" {
			_ = s.cmd.Process.Kill()
		}
		<-s.gone
	}
}

// admin returns the address of a database with the password of the superuser.
func (s *server) admin(database string) string {
	return fmt.Sprintf("postgres://varve:correct%%20horse@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// database makes a database and returns its name.
func (s *server) database(t testing.TB, options string) string {
	t.Helper()
	name := fmt.Sprintf("copies%d", s.databases.Add(1))
	s.do(t, "postgres", "CREATE DATABASE "+name+" "+options)
	return name
}

// do executes statements as the superuser, and returns the first column of the first row.
func (s *server) do(t testing.TB, database, text string) (value string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), s.admin(database))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	results, err := c.PgConn().Exec(t.Context(), text).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	for _, r := range results {
		if len(r.Rows) > 0 && len(r.Rows[0]) > 0 {
			return string(r.Rows[0][0])
		}
	}
	return ""
}

// options name a schema in a database.
func (s *server) options(database, schema string) postgres.Options {
	return postgres.Options{User: "varve", Hosts: fmt.Sprintf("127.0.0.1:%d", s.port), Database: database, Schema: schema}
}

// create makes a schema a remote.
func create(t testing.TB, o postgres.Options) *postgres.Remote {
	t.Helper()
	r, err := postgres.Create(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// open opens a remote.
func open(t testing.TB, o postgres.Options) *postgres.Remote {
	t.Helper()
	r, err := postgres.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}
