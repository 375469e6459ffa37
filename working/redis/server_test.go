package redis_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

// server is a real server in a folder of its own.
type server struct {
	t    testing.TB
	dir  string
	port int
	args []string
	cmd  *exec.Cmd
	out  *bytes.Buffer
	gone chan struct{}
	tls  bool
}

func program(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const why = "neither redis-server nor valkey-server is there; on Debian: apt-get install redis-server"
	if os.Getenv("VARVE_CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
	return ""
}

// start starts a server and waits until it answers.
func start(t testing.TB, args ...string) *server {
	t.Helper()
	program(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, dir: t.TempDir(), port: l.Addr().(*net.TCPAddr).Port, args: args}
	l.Close()
	t.Cleanup(s.kill)
	for _, a := range args {
		s.tls = s.tls || a == "--tls-cert-file"
	}
	s.start()
	return s
}

func (s *server) addr() string { return fmt.Sprint("127.0.0.1:", s.port) }

func (s *server) url() string { return "redis://" + s.addr() + "/0" }

func (s *server) start() {
	s.t.Helper()
	port := []string{"--port", fmt.Sprint(s.port)}
	if s.tls {
		port = []string{"--port", "0", "--tls-port", fmt.Sprint(s.port)}
	}
	args := append([]string{"--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--daemonize", "no",
		"--enable-debug-command", "yes"}, append(port, s.args...)...)
	s.cmd, s.out, s.gone = exec.Command(program(s.t), args...), &bytes.Buffer{}, make(chan struct{})
	s.cmd.Stdout, s.cmd.Stderr, s.cmd.SysProcAttr = s.out, s.out, dieWithParent()
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	cmd, gone := s.cmd, s.gone
	go func() { cmd.Wait(); close(gone) }()
	deadline := time.Now().Add(30 * time.Second)
	for !s.answers() {
		select {
		case <-s.gone:
			s.t.Fatalf("the server ended: %s", s.out)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			s.t.Fatal("the server does not answer")
		}
	}
}

// answers reports whether the server reads commands, with or without a password.
func (s *server) answers() bool {
	dial := &net.Dialer{Timeout: time.Second}
	c, err := dial.Dial("tcp", s.addr())
	if s.tls && err == nil {
		c = tls.Client(c, &tls.Config{InsecureSkipVerify: true})
	}
	if err != nil {
		return false
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Second))
	buf := make([]byte, 64)
	c.Write([]byte("PING\r\n"))
	n, err := c.Read(buf)
	return err == nil && n > 0 && !bytes.Contains(buf[:n], []byte("LOADING"))
}

// kill kills the server with SIGKILL.
func (s *server) kill() {
	if s.cmd != nil {
		s.cmd.Process.Kill()
		<-s.gone
	}
}

// admin returns a client that does not use the home.
func (s *server) admin(t testing.TB) *goredis.Client {
	c := goredis.NewClient(&goredis.Options{Addr: s.addr(), Protocol: 2})
	t.Cleanup(func() { c.Close() })
	return c
}

// shared is one server for all tests that do not change its configuration.
var shared struct {
	once sync.Once
	s    *server
}

func sharedServer(t *testing.T) *server {
	t.Helper()
	program(t)
	shared.once.Do(func() { shared.s = start(binary{t}) })
	if shared.s == nil {
		t.Fatal("the server did not start")
	}
	return shared.s
}

// binary owns a server on behalf of the test binary, so that it outlives the first test.
type binary struct{ *testing.T }

func (b binary) Cleanup(func()) {}

func (b binary) TempDir() string {
	dir, err := os.MkdirTemp("", "varve-redis-")
	if err != nil {
		b.Fatal(err)
	}
	return dir
}

func TestMain(m *testing.M) {
	if os.Getenv("VARVE_REDIS_CHILD") != "" {
		os.Exit(child())
	}
	code := m.Run()
	if s := shared.s; s != nil {
		s.kill()
		os.RemoveAll(s.dir)
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// shift lets time pass for the data in a server: every deadline becomes earlier, and every recorded time
// too. The server's own clock cannot be set.
var shift = goredis.NewScript(`
local prefix, d = ARGV[1], tonumber(ARGV[2])
local function num(n) return string.format('%.0f', n) end
for _, x in ipairs(redis.call('KEYS', prefix .. '{*}:x')) do
  local base = string.sub(x, 1, -2)
  local list = redis.call('ZRANGE', x, 0, -1, 'WITHSCORES')
  for i = 1, #list, 2 do
    redis.call('ZADD', x, num(tonumber(list[i + 1]) - d), list[i])
    local left = redis.call('PTTL', base .. list[i])
    if left >= 0 then redis.call('PEXPIREAT', base .. list[i], num(tonumber(list[i + 1]) - d)) end
  end
end
for _, key in ipairs(redis.call('KEYS', prefix .. '{*}:c:*')) do
  local h = redis.call('HGETALL', key)
  for i = 1, #h, 2 do
    local name, v = h[i], h[i + 1]
    if name == 'i.ms' then redis.call('HSET', key, name, num(tonumber(v) - d)) end
    if string.byte(name) == 118 and v ~= '' then
      local at, rest = string.match(v, '^(%d+)(:.*)$')
      if at ~= '0' then redis.call('HSET', key, name, num(tonumber(at) - d) .. rest) end
    end
  end
end
return 0`)

// advance lets time pass for all scopes of a prefix.
func advance(t testing.TB, c goredis.Scripter, prefix string, d time.Duration) {
	t.Helper()
	if err := shift.Eval(context.Background(), c, []string{"{}"}, prefix, d.Milliseconds()).Err(); err != nil {
		t.Fatal(err)
	}
}
