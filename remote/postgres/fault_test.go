package postgres_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/remote/postgres"
	"github.com/varve-db/varve/remote/remotetest"
)

// begin begins an epoch.
func begin(t *testing.T, r remote.Remote, l *remotetest.Log) uint64 {
	t.Helper()
	epoch, err := r.Begin(t.Context(), l.Anchor(t, remotetest.Head(t, r)))
	if err != nil {
		t.Fatal(err)
	}
	return epoch
}

// proxy passes connections to a server.
type proxy struct {
	l      net.Listener
	target string

	mu   sync.Mutex
	lose bool // the answer to the next commit is lost, and the connection with it
	lost int
}

func newProxy(t *testing.T, port int) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, target: fmt.Sprintf("127.0.0.1:%d", port)}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.pass(c) })
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return p
}

// pass passes the bytes of a connection in both directions.
func (p *proxy) pass(c net.Conn) {
	defer c.Close()
	s, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer s.Close()
	var mu sync.Mutex
	losing := false
	var done sync.WaitGroup
	defer done.Wait()
	done.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := s.Read(buf)
			mu.Lock()
			stop := losing && n > 0
			mu.Unlock()
			if stop { // the commit was answered
				c.Close()
				s.Close()
				return
			}
			if n > 0 {
				if _, werr := c.Write(buf[:n]); werr != nil {
					err = werr
				}
			}
			if err != nil {
				c.Close()
				s.Close()
				return
			}
		}
	})
	commit := binary.BigEndian.AppendUint32([]byte{'Q'}, 11)
	commit = append(commit, "COMMIT\x00"...)
	buf := make([]byte, 64<<10)
	for {
		n, err := c.Read(buf)
		if bytes.HasPrefix(buf[:n], commit) {
			p.mu.Lock()
			if p.lose {
				p.lose = false
				p.lost++
				mu.Lock()
				losing = true
				mu.Unlock()
			}
			p.mu.Unlock()
		}
		if n > 0 {
			if _, werr := s.Write(buf[:n]); werr != nil {
				err = werr
			}
		}
		if err != nil {
			s.Close()
			return
		}
	}
}

// A commit whose answer is lost with the connection is found by asking, and repeating it adds nothing.
func TestLostAnswers(t *testing.T) {
	s := shared.get(t)
	t.Setenv("PGPASSWORD", password)
	o := s.options(s.database(t, ""), "")
	create(t, o)
	p := newProxy(t, s.port)
	far := o
	far.Hosts = p.l.Addr().String()
	r, l := open(t, far), remotetest.NewLog(1)
	t.Cleanup(func() { r.Close() })
	lose := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.lose = true
	}
	a := l.Anchor(t, remote.Position{})
	lose()
	if _, err := r.Begin(t.Context(), a); err == nil || errors.Is(err, remote.ErrMoved) {
		t.Fatal("a lost answer:", err)
	}
	epoch, err := r.Begin(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	l.Grow(12, epoch)
	for i := range l.Pieces {
		if i%2 == 0 {
			lose()
			if err := r.Append(t.Context(), &l.Pieces[i]); err == nil || errors.Is(err, remote.ErrMoved) {
				t.Fatalf("piece %d, whose answer is lost: %v", i, err)
			}
			if i%4 == 0 {
				if h := remotetest.Head(t, r); h.At != l.Pieces[i].To {
					t.Fatalf("after piece %d: %+v", i, h)
				}
				continue
			}
		}
		remotetest.Append(t, r, l.Pieces[i])
	}
	if p.lost != 7 {
		t.Errorf("%d answers were lost, want 7", p.lost)
	}
	remotetest.Compare(t, open(t, o), epoch, l.Start.LSN, l.Pieces)
}

// A server that ends at once in the middle of the load has what it has acknowledged, in order.
func TestKilledServer(t *testing.T) {
	s := newServer(t)
	t.Setenv("PGPASSWORD", password)
	o := s.options(s.database(t, ""), "")
	r, l := create(t, o), remotetest.NewLog(1)
	epoch := begin(t, r, l)
	for range 3 {
		killed := make(chan struct{})
		base := len(l.Pieces)
		l.Grow(400, epoch)
		for i := base; i < len(l.Pieces); i++ {
			if i == base+5 {
				go func() { s.kill(); close(killed) }()
			}
			err := r.Append(t.Context(), &l.Pieces[i])
			if errors.Is(err, remote.ErrMoved) {
				t.Fatalf("piece %d: %v", i, err)
			}
			if err == nil {
				continue
			}
			<-killed
			s.start(t)
			h := remotetest.Head(t, r)
			if h.At != l.Pieces[i].From && h.At != l.Pieces[i].To {
				t.Fatalf("the head after piece %d failed: %+v", i, h)
			}
			remotetest.Append(t, r, l.Pieces[i])
			l.Pieces, l.End = l.Pieces[:i+1], l.Pieces[i].To
			break
		}
		<-killed
	}
	remotetest.Compare(t, r, epoch, l.Start.LSN, l.Pieces)
}

// A commit that no standby has confirmed is not acknowledged, and is not reported as the head either.
func TestUnconfirmedCommit(t *testing.T) {
	s := newServer(t)
	t.Setenv("PGPASSWORD", password)
	db := s.database(t, "")
	o := s.options(db, "")
	r, l := create(t, o), remotetest.NewLog(1)
	epoch := begin(t, r, l)
	l.Grow(2, epoch)
	remotetest.Append(t, r, l.Pieces[0])
	standby := func(names string) {
		s.do(t, db, "ALTER SYSTEM SET synchronous_standby_names = '"+names+"'")
		s.do(t, db, "SELECT pg_reload_conf()")
		for s.do(t, db, "SHOW synchronous_standby_names") != names {
			time.Sleep(time.Millisecond)
		}
	}
	standby("away")
	result := make(chan error, 1)
	go func() { result <- r.Append(t.Context(), &l.Pieces[1]) }()
	const waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = current_database()"
	for s.do(t, db, "SELECT count(*) "+waiting) != "1" {
		time.Sleep(time.Millisecond)
	}
	s.do(t, db, "SELECT pg_cancel_backend(pid) "+waiting)
	if err := <-result; err == nil || errors.Is(err, remote.ErrMoved) {
		t.Fatal("a commit that no standby has confirmed:", err)
	} else if !strings.Contains(err.Error(), "has not confirmed") {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if h, err := open(t, o).Head(ctx); err == nil {
		t.Errorf("the head has what no standby has confirmed: %+v", h)
	}
	if err := r.Append(ctx, &l.Pieces[1]); err == nil {
		t.Error("the piece counts as added before, and no standby has confirmed it")
	}
	standby("")
	remotetest.Append(t, r, l.Pieces[1])
	remotetest.Compare(t, r, epoch, l.Start.LSN, l.Pieces)
}

// The defaults of a database decide nothing.
func TestForeignDefaults(t *testing.T) {
	s := shared.get(t)
	t.Setenv("PGPASSWORD", password)
	remotetest.Run(t, func(t *testing.T) func() remote.Remote {
		db := s.database(t, "")
		for _, set := range []string{"default_transaction_isolation TO serializable", "synchronous_commit TO off",
			"default_transaction_read_only TO on", "timezone TO 'Asia/Kathmandu'", "bytea_output TO escape",
			"datestyle TO german", "search_path TO nowhere"} {
			s.do(t, "postgres", "ALTER DATABASE "+db+" SET "+set)
		}
		o := s.options(db, "")
		create(t, o)
		return func() remote.Remote { return open(t, o) }
	})
}

// A pooler gives the connection of another client for each transaction.
func TestPgBouncer(t *testing.T) {
	path, err := exec.LookPath("pgbouncer")
	if err != nil {
		path = "/usr/sbin/pgbouncer" // not in the PATH of every user
	}
	if _, err := os.Stat(path); err != nil {
		const why = "pgbouncer is not there; on Debian: apt-get install pgbouncer"
		if os.Getenv("VARVE_CI") != "" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	s := shared.get(t)
	t.Setenv("PGPASSWORD", password)
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	for name, text := range map[string]string{
		"users": `"varve" "` + password + "\"\n",
		"ini": fmt.Sprintf("[databases]\n* = host=127.0.0.1 port=%d\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"+
			"listen_port = %d\nauth_type = scram-sha-256\nauth_file = %s/users\npool_mode = transaction\n"+
			"default_pool_size = 3\nunix_socket_dir =\n", s.port, port, dir)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd, out := exec.Command(path, filepath.Join(dir, "ini")), &bytes.Buffer{}
	uid, gid := unprivileged()
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = out, out, as(uid, gid)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	address := fmt.Sprintf("127.0.0.1:%d", port)
	for try := 0; ; try++ {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			break
		} else if try == 500 {
			t.Fatalf("pgbouncer does not answer: %v\n%s", err, out)
		}
		time.Sleep(10 * time.Millisecond)
	}
	remotetest.Run(t, func(t *testing.T) func() remote.Remote {
		o := s.options(s.database(t, ""), "")
		o.Hosts = address
		create(t, o)
		return func() remote.Remote { return open(t, o) }
	})
}

// What cannot work is refused with a message that leads out and has no password.
func TestErrors(t *testing.T) {
	s := shared.get(t)
	t.Setenv("PGPASSWORD", password)
	db := s.database(t, "")
	good := s.options(db, "")
	refused := func(name string, o postgres.Options, want error, text string) {
		t.Helper()
		_, err := postgres.Open(t.Context(), o)
		if err == nil || want != nil && !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v; want %v with %q", name, err, want, text)
		} else if strings.Contains(err.Error(), password) {
			t.Errorf("%s: the message has the password: %v", name, err)
		}
	}
	refused("no schema", good, remote.ErrNoRemote, "check database and schema")
	o := good
	o.Database = "nowhere"
	refused("no database", o, remote.ErrNoRemote, "create the database")
	s.do(t, db, `CREATE SCHEMA taken; CREATE TABLE taken.customers (id int)`)
	o = good
	o.Schema = "taken"
	if _, err := postgres.Create(t.Context(), o); !errors.Is(err, errs.ErrInvalid) ||
		!strings.Contains(err.Error(), "customers") {
		t.Error("a schema with other tables:", err)
	}
	r := create(t, good)
	o = good
	o.SSLMode = "verify-full"
	refused("a server without TLS", o, nil, "TLS")
	o = good
	o.User = "stranger"
	refused("an unknown user", o, errs.ErrPermission, "PGPASSWORD")
	s.do(t, db, "CREATE ROLE visitor LOGIN PASSWORD '"+password+"'")
	o.User = "visitor"
	refused("a user without rights", o, errs.ErrPermission, "grant")
	o = good
	o.Hosts = "127.0.0.1:1"
	refused("no server", o, nil, "connect")

	pass := filepath.Join(t.TempDir(), "pgpass")
	if err := os.WriteFile(pass, []byte("*:*:*:*:"+password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PGPASSWORD", "wrong")
	refused("a wrong password", good, errs.ErrPermission, "PGPASSWORD")
	t.Setenv("PGPASSWORD", "")
	t.Setenv("PGPASSFILE", pass)
	open(t, good)
	if runtime.GOOS != "windows" {
		if err := os.Chmod(pass, 0o640); err != nil {
			t.Fatal(err)
		}
		refused("a password that others can read", good, errs.ErrPermission, "chmod 600")
	}
	t.Setenv("PGPASSWORD", password)

	s.do(t, db, "UPDATE varve.remote SET version = 2")
	refused("a newer schema", good, errs.ErrNewerFormat, "newer")
	s.do(t, db, "UPDATE varve.remote SET version = 1")
	if _, err := r.Head(t.Context()); err != nil {
		t.Error(err)
	}
	s.do(t, db, "DROP SCHEMA varve CASCADE")
	if _, err := r.Head(t.Context()); !errors.Is(err, remote.ErrNoRemote) {
		t.Error("a schema that was removed:", err)
	}
	create(t, good)
	if _, err := r.Head(t.Context()); !errors.Is(err, remote.ErrNoRemote) {
		t.Error("another copy in its place:", err)
	}
}

// A server that would lose what it has committed, and a replica, are refused.
func TestUnsuitableServers(t *testing.T) {
	s := newServer(t, "-c", "max_wal_senders=3", "-c", "wal_level=replica")
	t.Setenv("PGPASSWORD", password)
	o := s.options(s.database(t, ""), "")
	r := create(t, o)
	replica := &server{t: t, dir: t.TempDir()}
	replica.init(t)
	data := filepath.Join(replica.dir, "data")
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	uid, gid := unprivileged()
	cmd := exec.Command(program(t, "pg_basebackup"), "-D", data, "-R", "-X", "stream", "-c", "fast", "--no-sync", "-d",
		fmt.Sprintf("host=127.0.0.1 port=%d user=varve password='%s'", s.port, password))
	cmd.Dir, cmd.SysProcAttr = replica.dir, as(uid, gid)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(replica.kill)
	replica.start(t)
	o.Hosts = fmt.Sprintf("127.0.0.1:%d", replica.port)
	for _, f := range []func(context.Context, postgres.Options) (*postgres.Remote, error){postgres.Open, postgres.Create} {
		if _, err := f(t.Context(), o); !errors.Is(err, remote.ErrUnsuitable) || !strings.Contains(err.Error(), "primary") {
			t.Error("a replica:", err)
		}
	}
	o.Hosts = fmt.Sprintf("127.0.0.1:%d,127.0.0.1:%d", replica.port, s.port)
	if both := open(t, o); both.ID() != r.ID() {
		t.Error("of two servers the primary was not found")
	}
	s.do(t, "postgres", "ALTER SYSTEM SET fsync = off; ")
	s.do(t, "postgres", "SELECT pg_reload_conf()")
	for s.do(t, "postgres", "SHOW fsync") != "off" {
		time.Sleep(time.Millisecond)
	}
	o.Hosts = fmt.Sprintf("127.0.0.1:%d", s.port)
	if _, err := postgres.Open(t.Context(), o); !errors.Is(err, remote.ErrUnsuitable) {
		t.Error("fsync=off:", err)
	}
}

// Rows that were changed, removed or cannot be read are named, and the others are read.
func TestDamage(t *testing.T) {
	s := shared.get(t)
	t.Setenv("PGPASSWORD", password)
	for name, damage := range map[string]string{
		"bytes":  "UPDATE varve.entries SET bytes = set_byte(bytes, 9, get_byte(bytes, 9) # 1) WHERE number = 4",
		"cut":    "UPDATE varve.entries SET bytes = substr(bytes, 2) WHERE number = 4",
		"column": "UPDATE varve.entries SET to_sum = to_sum + 1 WHERE number = 4",
		"row":    "DELETE FROM varve.entries WHERE number = 4",
		"swap": "UPDATE varve.entries SET bytes = (SELECT bytes FROM varve.entries WHERE number = 5), sha256 = (SELECT " +
			"sha256 FROM varve.entries WHERE number = 5) WHERE number = 4",
		"toast": "CREATE EXTENSION pg_surgery; SELECT heap_force_kill((SELECT reltoastrelid::regclass FROM pg_class " +
			"WHERE oid = 'varve.entries'::regclass), ARRAY['(0,1)'::tid])",
	} {
		t.Run(name, func(t *testing.T) {
			db := s.database(t, "")
			r, l := create(t, s.options(db, "")), remotetest.NewLog(3)
			epoch := begin(t, r, l)
			l.Grow(6, epoch)
			if name == "toast" { // rows of random bytes that lie in other pages
				for i := range l.Pieces {
					b := make([]byte, 9000)
					for j := range b {
						b[j] = byte(j * j >> 3 * (j ^ i))
					}
					l.Pieces[i].Bytes = b
					remotetest.Append(t, r, l.Pieces[i])
				}
			} else {
				remotetest.Append(t, r, l.Pieces...)
			}
			s.do(t, db, damage)
			good, bad := 0, 0
			for p, err := range r.Read(t.Context(), epoch, l.Start.LSN) {
				switch {
				case errors.Is(err, errs.ErrCorrupt):
					bad++
				case err != nil:
					t.Fatal(err)
				default:
					good++
					found := false
					for i := range l.Pieces {
						found = found || p.From == l.Pieces[i].From && bytes.Equal(p.Bytes, l.Pieces[i].Bytes)
					}
					if !found {
						t.Errorf("a piece that was never added: from %d", p.From.LSN)
					}
				}
			}
			if good != 5 || bad != 1 {
				t.Errorf("%d pieces, %d damaged, want 5 and 1", good, bad)
			}
		})
	}
}

// The newest entry is judged by the number in the row of remote.
func TestLostHead(t *testing.T) {
	s := shared.get(t)
	t.Setenv("PGPASSWORD", password)
	db := s.database(t, "")
	r, l := create(t, s.options(db, "")), remotetest.NewLog(3)
	epoch := begin(t, r, l)
	l.Grow(3, epoch)
	remotetest.Append(t, r, l.Pieces[:2]...)
	s.do(t, db, "DELETE FROM varve.entries WHERE number = 3")
	if _, err := r.Head(t.Context()); !errors.Is(err, errs.ErrCorrupt) {
		t.Error(err)
	}
	if err := r.Append(t.Context(), &l.Pieces[1]); !errors.Is(err, errs.ErrCorrupt) {
		t.Error("a piece was added after one that is lost:", err)
	}
	bad := 0
	for _, err := range r.Read(t.Context(), epoch, l.Start.LSN) {
		if errors.Is(err, errs.ErrCorrupt) {
			bad++
		}
	}
	if bad != 1 {
		t.Errorf("%d missing pieces were reported, want 1", bad)
	}
	s.do(t, db, "DELETE FROM varve.remote")
	if _, err := r.Head(t.Context()); !errors.Is(err, errs.ErrCorrupt) {
		t.Error(err)
	}
}

// endless is a body that does not end.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(i * i >> 2)
	}
	return len(b), nil
}

// A database without space says so, and goes on when it has some.
func TestFullDatabase(t *testing.T) {
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	s := newServer(t)
	t.Setenv("PGPASSWORD", password)
	small := filepath.Join(s.dir, "small")
	if err := os.Mkdir(small, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", small).CombinedOutput(); err != nil {
		t.Skipf("no small disk can be mounted: %v %s", err, out)
	}
	t.Cleanup(func() { s.kill(); _ = exec.Command("umount", "-l", small).Run() })
	own(t, small)
	s.do(t, "postgres", "CREATE TABLESPACE small LOCATION '"+small+"'")
	o := s.options(s.database(t, "TABLESPACE small"), "")
	r, l := create(t, o), remotetest.NewLog(1)
	epoch := begin(t, r, l)
	l.Grow(200, epoch)
	remotetest.Append(t, r, l.Pieces[0])
	snapshot := remote.Snapshot{ID: remotetest.NewID(t), Geometry: l.Geometry, Epoch: epoch, Begin: l.Start, End: l.End,
		Format: remote.Format, Time: time.UnixMicro(1)}
	if err := r.Save(t.Context(), &snapshot, io.LimitReader(endless{}, 64<<20)); !errors.Is(err, errs.ErrDiskFull) {
		t.Fatal(err)
	}
	if list, err := r.Snapshots(t.Context()); err != nil || len(list) > 0 {
		t.Error(list, err)
	}
	remotetest.Append(t, r, l.Pieces[0])
	if out, err := exec.Command("mount", "-o", "remount,size=64m", small).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	remotetest.Append(t, r, l.Pieces[1:20]...)
	remotetest.Compare(t, r, epoch, l.Start.LSN, l.Pieces[:20])
}
