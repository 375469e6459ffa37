package crash

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/vfs"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is a process on a disk, with methods that fail the test if a call fails.
type world struct {
	t testing.TB
	*Process
	files map[string]vfs.File
}

func on(t testing.TB, d *Disk) *world { return &world{t, d.Process("test"), map[string]vfs.File{}} }

func (w *world) open(name string) vfs.File {
	w.t.Helper()
	f := w.files[name]
	if f == nil {
		var err error
		f, err = w.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
		must(w.t, err)
		w.files[name] = f
	}
	return f
}

// run executes a script: "write a AAA", "sync a", "rename a b", ….
func (w *world) run(script string) {
	w.t.Helper()
	for line := range strings.SplitSeq(script, ";") {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		var err error
		switch f[0] {
		case "write": // name, 512 of a letter for each letter
			_, err = w.open(f[1]).WriteAt(letters(f[2]), 0)
		case "at": // name, sector, letters
			_, err = w.open(f[1]).WriteAt(letters(f[3]), int64(f[2][0]-'0')*sectorSize)
		case "sync":
			err = w.open(f[1]).Sync()
		case "datasync":
			err = w.open(f[1]).Datasync()
		case "failsync":
			boom := func(op, name string) error { return syscall.EIO }
			w.d.FailSync(boom)
			if err := w.open(f[1]).Sync(); !errors.Is(err, syscall.EIO) {
				w.t.Fatal(err)
			}
			w.d.FailSync(nil)
		case "failbarrier":
			b, _ := w.OpenBarrier("/")
			w.d.FailSync(func(op, name string) error { return syscall.EIO })
			if err := b.Sync(); !errors.Is(err, syscall.EIO) {
				w.t.Fatal(err)
			}
			w.d.FailSync(nil)
		case "barrier":
			b, _ := w.OpenBarrier("/")
			err = b.Sync()
		case "truncate":
			err = w.open(f[1]).Truncate(int64(f[2][0]-'0') * sectorSize)
		case "close":
			err = w.open(f[1]).Close()
			delete(w.files, f[1])
		case "syncdir":
			err = w.SyncDir(f[1])
		case "mkdir":
			err = w.Mkdir(f[1], 0o700)
		case "remove":
			err = w.Remove(f[1])
		case "rename":
			err = w.Rename(f[1], f[2])
		case "exchange":
			err = w.Exchange(f[1], f[2])
		case "link":
			err = w.Link(f[1], f[2])
		case "dropcaches":
			w.d.DropCaches()
		default:
			w.t.Fatal("what is", f[0])
		}
		if err != nil {
			w.t.Fatalf("%s: %v", line, err)
		}
	}
}

func letters(s string) []byte {
	var b []byte
	for _, c := range []byte(s) {
		b = append(b, bytes.Repeat([]byte{c}, sectorSize)...)
	}
	return b
}

// tree lists everything on a disk: "a=AB" for each file, one letter per sector, "." for zeros.
func tree(t testing.TB, d *Disk) string {
	p := d.Process("look")
	defer d.Kill(p)
	var out []string
	var walk func(dir string)
	walk = func(dir string) {
		names, err := p.ReadDir(dir)
		must(t, err)
		for _, n := range names {
			name := strings.TrimSuffix(dir, "/") + "/" + n
			st, err := p.Stat(name)
			must(t, err)
			if st.Mode.IsDir() {
				out = append(out, name[1:]+"/")
				walk(name)
				continue
			}
			b, err := vfs.ReadFile(p, name, 1<<30)
			must(t, err)
			s := name[1:] + "="
			for len(b) > 0 {
				n := min(len(b), sectorSize)
				switch {
				case b[0] == 0:
					s += "."
				case bytes.Count(b[:n], b[:1]) != n:
					s += "?"
				default:
					s += string(b[:1])
				}
				b = b[n:]
			}
			out = append(out, s)
		}
	}
	walk("/")
	return strings.Join(out, " ")
}

func TestWhatSurvives(t *testing.T) {
	for _, c := range []struct{ script, pattern, want string }{
		// Nothing durable without both syncs. FAILURES 5.
		{"write a AB", "lose-all", ""},
		{"write a AB; sync a", "lose-all", ""},
		{"write a AB; syncdir /", "lose-all", "a="},
		{"write a AB; sync a; syncdir /", "lose-all", "a=AB"},
		{"write a AB; datasync a; syncdir /", "lose-all", "a=AB"},
		{"write a AB; barrier", "lose-all", "a=AB"},
		{"write a AB", "keep-all", "a=AB"},
		{"write a AB; sync a; syncdir /; write a XYZ", "lose-all", "a=AB"},
		{"write a AB; sync a; syncdir /; write a XYZ", "keep-all", "a=XYZ"},
		// Data without size, size without data, names without either.
		{"write a AB; sync a; syncdir /; write a XYZ", "keep-data", "a=XY"},
		{"write a AB; sync a; syncdir /; write a XYZ", "lose-data-zero", "a=AB."},
		{"write a AB; sync a; syncdir /; write a XYZ", "keep-names", "a=AB"},
		{"write a AB", "keep-names", "a="},
		{"write a AB", "keep-data", ""},
		{"write a AB", "lose-data-zero", "a=.."},
		{"write b OO; barrier; remove b; close b; write a AB; datasync a; syncdir /; write a ABCD", "lose-data-old", "a=ABOO"},
		// Cutting short.
		{"write a ABC; barrier; truncate a 1", "lose-all", "a=ABC"},
		{"write a ABC; barrier; truncate a 1; sync a", "lose-all", "a=A"},
		{"write a ABC; barrier; truncate a 1; at a 2 Z", "keep-all", "a=A.Z"},
		{"write a ABC; barrier; truncate a 1; at a 2 Z; sync a", "lose-all", "a=A.Z"},
		{"write a ABC; barrier; truncate a 1", "keep-names", "a=ABC"},
		// Replacing.
		{"write a A; barrier; write t T; rename t a", "lose-all", "a=A"},
		{"write a A; barrier; write t T; rename t a; syncdir /", "lose-all", "a="},
		{"write a A; barrier; write t T; sync t; rename t a; syncdir /", "lose-all", "a=T"},
		{"write a A; barrier; write t T; sync t; rename t a", "keep-names", "a=T"},
		{"write a A; write b B; barrier; exchange a b", "keep-names", "a=B b=A"},
		{"write a A; write b B; barrier; exchange a b", "lose-all", "a=A b=B"},
		{"write a A; barrier; link a b; remove a", "lose-all", "a=A"},
		{"write a A; barrier; link a b; remove a; syncdir /", "lose-all", "b=A"},
		// A removal that did not survive restores the content, with the pending changes.
		{"write a A; barrier; write a B; remove a; close a", "lose-all", "a=A"},
		{"write a A; barrier; write a B; remove a; close a", "keep-data", "a=B"},
		// Two folders: one step, made durable by either.
		{"mkdir m; mkdir t; barrier; write t/x X; sync t/x; rename t/x m/a; syncdir m", "lose-all", "m/ m/a=X t/"},
		{"mkdir m; mkdir t; barrier; write t/x X; sync t/x; rename t/x m/a; syncdir t", "lose-all", "m/ m/a=X t/"},
		{"mkdir m; write m/a A; sync m/a; syncdir m", "lose-all", ""},
		{"mkdir m; write m/a A; sync m/a; syncdir m; syncdir /", "lose-all", "m/ m/a=A"},
		// FAILURES 6, 71, 76, 77: a sync fails, the next one "succeeds".
		{"write a A; barrier; write a B; failsync a; sync a", "lose-all", "a=A"},
		{"write a A; barrier; write a B; failsync a; sync a", "keep-all", "a=A"},
		{"write a A; barrier; write a B; failsync a; barrier", "lose-all", "a=A"},
		{"write a A; barrier; write a B; failsync a; write a B; sync a", "lose-all", "a=B"},
		{"write a A; barrier; write a B; failbarrier; barrier", "lose-all", "a=A"},
		{"write a AB; barrier; write a XY; failsync a; at a 1 Z; sync a", "lose-all", "a=AZ"},
		{"write a AB; barrier; write a XY; failsync a; at a 1 Z", "keep-all", "a=AZ"},
		{"write a A; barrier; write a ABC; failsync a; sync a", "lose-all", "a=A.."},
		{"write a A; barrier; write a B; failsync a; close a; write a B; sync a", "lose-all", "a=B"},
	} {
		d := New()
		on(t, d).run(c.script)
		before := tree(t, d)
		var got string
		for _, p := range Patterns() {
			if p.String() == c.pattern {
				next := d.Crash(p, rand.New(rand.NewPCG(1, 2)))
				got = tree(t, next)
				if again := tree(t, next.Crash(LoseAll, nil)); again != got {
					t.Errorf("%s | %s: a second crash made %q of %q", c.script, c.pattern, again, got)
				}
			}
		}
		if got != c.want {
			t.Errorf("%s | %s:\n got %q\nwant %q", c.script, c.pattern, got, c.want)
		}
		if after := tree(t, d); after != before {
			t.Errorf("%s: the crash changed the disk it was taken from: %q, was %q", c.script, after, before)
		}
	}
}

func TestFailedSyncIsSeenUntilCacheDrops(t *testing.T) {
	d := New()
	w := on(t, d)
	w.run("write a AB; barrier; write a XY; failsync a; sync a")
	if got := tree(t, d); got != "a=XY" {
		t.Fatal(got)
	}
	w.run("at a 1 Z; dropcaches")
	if got := tree(t, d); got != "a=AZ" {
		t.Fatal(got)
	}
}

// outcomes collects what random crashes of a script leave.
func outcomes(t *testing.T, script string, p Pattern, rounds int) map[string]int {
	d := New()
	on(t, d).run(script)
	seen := map[string]int{}
	for i := range rounds {
		a := tree(t, d.Crash(p, rand.New(rand.NewPCG(7, uint64(i)))))
		if b := tree(t, d.Crash(p, rand.New(rand.NewPCG(7, uint64(i))))); a != b {
			t.Fatalf("%v, seed 7/%d: %q and then %q", p, i, a, b)
		}
		seen[a]++
	}
	return seen
}

// Sectors are independent, and each may end as any version it had.
func TestRandomReachesEverything(t *testing.T) {
	seen := outcomes(t, "write a ..; barrier; write a AB; write a CD", KeepRandom, 400)
	for _, first := range ".AC" {
		for _, second := range ".BD" {
			if s := fmt.Sprintf("a=%c%c", first, second); seen[s] == 0 {
				t.Errorf("%s never came: %v", s, seen)
			}
		}
	}
	if len(seen) != 9 {
		t.Error(seen)
	}
}

func TestLateSurvivesWithoutEarly(t *testing.T) {
	seen := outcomes(t, "write a ....; barrier; at a 0 A; at a 1 BC; at a 3 D", KeepLate, 400)
	for _, want := range []string{"a=...D", "a=.B.D", "a=..CD", "a=ABCD", "a=...."} {
		if seen[want] == 0 {
			t.Errorf("%s never came: %v", want, seen)
		}
	}
}

func TestPrefix(t *testing.T) {
	seen := outcomes(t, "write a ..; barrier; at a 0 A; at a 1 B; write b C", KeepPrefix, 200)
	for _, want := range []string{"a=..", "a=A.", "a=AB", "a=AB b=", "a=AB b=C"} {
		if seen[want] == 0 {
			t.Errorf("%s never came", want)
		}
	}
	if len(seen) != 5 {
		t.Error(seen)
	}
}

// Steps on different names survive in any combination, those on one name in order.
func TestStepsKeepOrderOnAName(t *testing.T) {
	seen := outcomes(t, "write a A; write b B; barrier; rename a c; remove b; write t T; rename t c", KeepRandom, 600)
	for state := range seen {
		if strings.Contains(state, "a=") && strings.Contains(state, "c=") {
			t.Errorf("the second step on c survived without the first: %s", state)
		}
	}
	for _, want := range []string{"a=A b=B", "a=A", "b=B c=A", "c=A"} {
		if seen[want] == 0 {
			t.Errorf("%q never came: %v", want, seen)
		}
	}
}

func TestMtimeIsPending(t *testing.T) {
	when := time.Date(2020, 1, 2, 3, 4, 5, 6000, time.UTC)
	for sync, want := range map[string]bool{"datasync a": false, "sync a": true, "barrier": true} {
		d := New()
		w := on(t, d)
		w.run("write a A; barrier")
		must(t, w.open("a").SetMtime(when))
		w.run(sync)
		st, err := d.Crash(LoseAll, nil).Process("x").Stat("/a")
		must(t, err)
		if st.Mtime.Equal(when) != want {
			t.Errorf("after %s the time is %v", sync, st.Mtime)
		}
	}
}

func TestDiskFull(t *testing.T) {
	d := New()
	d.SetCapacity(3*pageSize + inodeCost)
	w := on(t, d)
	f := w.open("a")
	n, err := f.WriteAt(make([]byte, 5*pageSize), 100)
	if !vfs.IsDiskFull(err) || n != 3*pageSize-100 {
		t.Fatal(n, err)
	}
	if _, err := f.WriteAt([]byte("x"), 0); err != nil {
		t.Fatal("a write in place needs no room:", err)
	}
	if _, err := w.OpenFile("b", os.O_CREATE|os.O_RDWR, 0o600); !vfs.IsDiskFull(err) {
		t.Fatal(err)
	}
	must(t, f.Truncate(0))
	must(t, w.Remove("a"))
	if d.Used() == 0 {
		t.Fatal("a file that is open was freed")
	}
	must(t, f.Close())
	if d.Used() != 0 {
		t.Fatal(d.Used())
	}
}

func TestErrors(t *testing.T) {
	w := on(t, New())
	w.run("mkdir d; write d/a A; write b B")
	for what, c := range map[string]struct{ got, want error }{
		"missing":       {w.Remove("x"), fs.ErrNotExist},
		"missing dir":   {w.Mkdir("x/y", 0o700), fs.ErrNotExist},
		"mkdir":         {w.Mkdir("d", 0o700), fs.ErrExist},
		"not empty":     {w.Remove("d"), syscall.ENOTEMPTY},
		"rename new":    {w.RenameNew("b", "d/a"), fs.ErrExist},
		"link":          {w.Link("b", "d/a"), fs.ErrExist},
		"exchange":      {w.Exchange("b", "x"), fs.ErrNotExist},
		"through file":  {w.Mkdir("b/c", 0o700), syscall.ENOTDIR},
		"over a folder": {w.Rename("b", "d"), syscall.EISDIR},
		"syncdir":       {w.SyncDir("b"), syscall.ENOTDIR},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, want %v", what, c.got, c.want)
		}
	}
	if _, err := w.OpenFile("b", os.O_CREATE|os.O_EXCL, 0); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	f, err := w.OpenFile("b", os.O_RDONLY, 0)
	must(t, err)
	if _, err := f.WriteAt([]byte("x"), 0); !errors.Is(err, syscall.EBADF) {
		t.Error(err)
	}
	must(t, f.Close())
	if _, err := f.ReadAt(make([]byte, 1), 0); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

func TestNlinkAndInodeNumbers(t *testing.T) {
	d := New()
	w := on(t, d)
	w.run("write a A; link a b; sync a; syncdir /")
	st, err := w.Stat("a")
	must(t, err)
	if st.Nlink != 2 {
		t.Fatal(st.Nlink)
	}
	w.run("remove a; remove b; close a")
	w.run("write c C")
	reused, err := w.Stat("c")
	must(t, err)
	if reused.Ino != st.Ino {
		t.Fatal("a removed file's number is not used again")
	}
	next := d.Crash(LoseAll, nil)
	back, err := next.Process("x").Stat("/a")
	must(t, err)
	if back.Nlink != 2 || tree(t, next) != "a=A b=A" {
		t.Fatal(back, tree(t, next))
	}
}

// A long list of pending writes is merged without changing what is possible.
func TestFold(t *testing.T) {
	d := New()
	w := on(t, d)
	w.run("write a ....; barrier")
	f := w.open("a")
	for i := range 10_000 {
		_, err := f.WriteAt([]byte{byte(i), byte(i >> 8)}, int64(i%4)*sectorSize)
		must(t, err)
	}
	if n := len(f.(*file).in.pending); n > 4096 {
		t.Fatal(n, "changes are pending")
	}
	read := func(d *Disk) []byte {
		b, err := vfs.ReadFile(d.Process("x"), "/a", 1<<20)
		must(t, err)
		return b
	}
	if !bytes.Equal(read(d), read(d.Crash(KeepAll, nil))) {
		t.Fatal("merging changed the newest version")
	}
	if !bytes.Equal(read(d.Crash(LoseAll, nil)), letters("....")) {
		t.Fatal("merging made something durable")
	}
	w.run("sync a")
	if !bytes.Equal(read(d), read(d.Crash(LoseAll, nil))) {
		t.Fatal("not durable")
	}
}

// Compared with a plain byte slice: content under random writes, cuts and syncs.
func TestContentAgainstModel(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 1))
		d := New()
		w := on(t, d)
		f := w.open("a")
		must(t, w.SyncDir("/"))
		var model, durable []byte
		for range 200 {
			switch rng.IntN(6) {
			case 0:
				must(t, f.Sync())
				durable = slices.Clone(model)
			case 1:
				n := rng.IntN(20_000)
				must(t, f.Truncate(int64(n)))
				model = append(model, make([]byte, max(0, n-len(model)))...)[:n]
			case 2: // another timeline must not write into this one
				for _, p := range Patterns() {
					n := d.Crash(p, rand.New(rand.NewPCG(seed, 3)))
					on(t, n).run("write a ZZZZ; sync a")
				}
			default:
				b := make([]byte, rng.IntN(5000)+1)
				for i := range b {
					b[i] = byte(rng.Uint32())
				}
				off := rng.IntN(16_000)
				_, err := f.WriteAt(b, int64(off))
				must(t, err)
				model = append(model, make([]byte, max(0, off+len(b)-len(model)))...)
				copy(model[off:], b)
			}
		}
		for d, want := range map[*Disk][]byte{
			d: model, d.Crash(KeepAll, nil): model, d.Crash(LoseAll, nil): durable,
		} {
			got, err := vfs.ReadFile(d.Process("x"), "/a", 1<<20)
			must(t, err)
			if !bytes.Equal(got, want) {
				t.Fatalf("seed %d (go test -run ContentAgainstModel): content differs", seed)
			}
		}
	}
}

func BenchmarkOps(b *testing.B) {
	p := New().Process("x")
	f, err := p.OpenFile("log", os.O_RDWR|os.O_CREATE, 0o600)
	must(b, err)
	data := make([]byte, 1000)
	off := int64(0)
	for b.Loop() { // two operations
		if off > 1<<20 {
			off = 0
		}
		f.WriteAt(data, off)
		f.Datasync()
		off += 1000
	}
}

func BenchmarkReplace(b *testing.B) {
	p := New().Process("x")
	data := make([]byte, 1000)
	for b.Loop() { // six operations
		must(b, vfs.WriteDurable(p, "/tmp", "/name", data, 0o600))
	}
}

// Random changes of names: if everything survives, the visible tree survives, and a barrier makes it
// durable; after no crash does a file that was never linked have two names.
func TestNamesAgainstLive(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 9))
		d := New()
		w := on(t, d)
		w.run("mkdir d0; mkdir d1; barrier")
		name := func() string { return fmt.Sprintf("d%d/%c", rng.IntN(2), 'a'+rune(rng.IntN(5))) }
		for i := range 300 {
			a, b := name(), name()
			switch rng.IntN(6) {
			case 0:
				w.Remove(a)
			case 1:
				w.Rename(a, b)
			case 2:
				w.RenameNew(a, b)
			case 3:
				w.Exchange(a, b)
			case 4:
				must(t, w.SyncDir(a[:2]))
			default:
				if f, err := w.OpenFile(a, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err == nil {
					f.WriteAt(letters(string(rune('A'+i%26))), 0)
					f.Close()
				}
			}
			live := tree(t, d)
			if got := tree(t, d.Crash(KeepAll, rng)); got != live {
				t.Fatalf("seed %d: %q survives of %q", seed, got, live)
			}
			for _, p := range Patterns() {
				next := d.Crash(p, rng)
				x := next.Process("x")
				for _, dir := range []string{"/d0", "/d1"} {
					names, err := x.ReadDir(dir)
					must(t, err)
					for _, n := range names {
						if st, err := x.Stat(dir + "/" + n); err != nil || st.Nlink != 1 {
							t.Fatalf("seed %d: %v left %s/%s with %d links (%v)", seed, p, dir, n, st.Nlink, err)
						}
					}
				}
			}
		}
		w.run("barrier")
		if got, live := tree(t, d.Crash(LoseAll, rng)), tree(t, d); got != live {
			t.Fatalf("seed %d: a barrier left %q of %q", seed, got, live)
		}
		if d.Used() != d.Crash(LoseAll, rng).Used() {
			t.Fatalf("seed %d: %d bytes are used, %d after a crash", seed, d.Used(), d.Crash(LoseAll, rng).Used())
		}
	}
}

// A copy is of the same boot, has the same inodes and content, and is independent of the original.
func TestCopy(t *testing.T) {
	d := New()
	p := d.Process("a")
	f, err := p.OpenFile("/x", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("before"), 0); err != nil {
		t.Fatal(err)
	}
	l, err := p.OpenLock("/l", 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := l.TryLock(vfs.ModeExclusive); !ok || err != nil {
		t.Fatal(ok, err)
	}
	c := d.Copy()
	q := c.Process("b")
	if _, err := f.WriteAt([]byte("after!"), 0); err != nil {
		t.Fatal(err)
	}
	b, err := vfs.ReadFile(q, "/x", 100)
	if err != nil || string(b) != "before" {
		t.Fatalf("%q %v", b, err)
	}
	was, err1 := p.Stat("/x")
	is, err2 := q.Stat("/x")
	if err1 != nil || err2 != nil || was.Ino != is.Ino || p.Host().Boot != q.Host().Boot {
		t.Fatal(was, is, err1, err2)
	}
	m, err := q.OpenLock("/l", 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := m.TryLock(vfs.ModeExclusive); !ok || err != nil {
		t.Fatal("the copy has the lock of a process that it does not have", err)
	}
}

// A volume reports what it does not support, also after a crash, and everything else works.
func TestLacks(t *testing.T) {
	d := New()
	d.SetLacks(Lacks{Exchange: true, Link: true, Lease: true, Barrier: true})
	for range 2 {
		p := d.Process("a")
		for _, name := range []string{"/x", "/y"} {
			if f, err := p.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
				t.Fatal(err)
			} else if _, err := f.Lease(); !errors.Is(err, errors.ErrUnsupported) {
				t.Fatal(err)
			}
		}
		if err := p.Exchange("/x", "/y"); !errors.Is(err, errors.ErrUnsupported) {
			t.Fatal(err)
		}
		if err := p.Link("/x", "/z"); !errors.Is(err, errors.ErrUnsupported) {
			t.Fatal(err)
		}
		if _, err := p.OpenBarrier("/"); !errors.Is(err, errors.ErrUnsupported) {
			t.Fatal(err)
		}
		if err := p.Rename("/x", "/y"); err != nil {
			t.Fatal(err)
		}
		d = d.Crash(LoseAll, rand.New(rand.NewPCG(1, 1)))
	}
}
