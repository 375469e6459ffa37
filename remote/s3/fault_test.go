package s3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/remote/remotetest"
	"github.com/varve-db/varve/remote/s3"
	"github.com/varve-db/varve/segment"
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

// isHead reports whether a request stores the head.
func isHead(r *http.Request) bool {
	return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/head")
}

// Hundreds of entries make lists of lists; each position is found, and what is pruned leaves no object behind.
func TestLists(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	r := s3.Small(b.create("p"))
	l := remotetest.NewLog(1)
	epoch := begin(t, r, l)
	l.Grow(150, epoch)
	remotetest.Append(t, r, l.Pieces...)
	other := b.open("p")
	for i := 0; i < len(l.Pieces); i += 7 {
		p := &l.Pieces[i]
		remotetest.Compare(t, other, epoch, p.From.LSN, l.Pieces[i:])
		remotetest.Compare(t, other, epoch, p.To.LSN-8, l.Pieces[i:])
	}
	if head := len(b.get("p/head")); head > 20<<10 {
		t.Errorf("the head has %d bytes", head)
	}
	before := len(b.keys("p/"))
	for _, keep := range []int{140, 37, 1} {
		at := len(l.Pieces) - keep
		if _, err := r.Prune(t.Context(), epoch, l.Pieces[at].From.LSN); err != nil {
			t.Fatal(err)
		}
		remotetest.Compare(t, other, epoch, l.Pieces[at].From.LSN, l.Pieces[at:])
	}
	if left := b.keys("p/"); len(left) > 3 {
		t.Errorf("%d objects of %d are left for one piece: %v", len(left), before, left)
	}
}

// A request whose answer is lost is sent again by the client, or by the caller: each piece is there once.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	r := s3.Small(b.create("p"))
	l := remotetest.NewLog(1)
	rng := rand.New(rand.NewPCG(proofs.Seed(t, 0), 1))
	b.with(func() {
		b.lose = func(r *http.Request) bool { return r.Method == http.MethodPut && rng.IntN(3) == 0 }
	})
	a := l.Anchor(t, remote.Position{})
	var epoch uint64
	for err := error(errors.ErrUnsupported); err != nil; {
		if epoch, err = r.Begin(t.Context(), a); errors.Is(err, remote.ErrMoved) {
			t.Fatal(err)
		}
	}
	l.Grow(40, epoch)
	for i := range l.Pieces {
		for {
			err := r.Append(t.Context(), &l.Pieces[i])
			if errors.Is(err, remote.ErrMoved) {
				t.Fatalf("piece %d: %v", i, err)
			}
			if err == nil {
				break
			}
		}
	}
	b.with(func() { b.lose = nil })
	remotetest.Compare(t, b.open("p"), epoch, l.Start.LSN, l.Pieces)
}

// Listings have the objects of a moment before, new ones are missing and removed ones are there: entries and reads do
// not depend on them, no snapshot that is gone is named, a prune removes nothing that the head names, and what it has
// overlooked is removed by a later prune.
func TestListingLags(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	r := s3.Small(b.create("p"))
	l := remotetest.NewLog(1)
	epoch := begin(t, r, l)
	was := map[string][]byte{} // the answer before, by the query
	lags := 0
	b.with(func() {
		b.before = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || !r.URL.Query().Has("list-type") {
				return false
			}
			answer := httptest.NewRecorder()
			b.fake.ServeHTTP(answer, r)
			now, before := answer.Body.Bytes(), was[r.URL.RawQuery]
			if was[r.URL.RawQuery] = now; before == nil {
				before = now
			}
			if !bytes.Equal(before, now) {
				lags++
			}
			w.Header().Set("Content-Type", "application/xml")
			_, _ = w.Write(before)
			return true
		}
	})
	snapshots := map[uuid.UUID]bool{}
	save := func() uuid.UUID {
		t.Helper()
		s := remote.Snapshot{ID: remotetest.NewID(t), Geometry: l.Geometry, Epoch: epoch, Begin: l.Start, End: l.Start,
			Format: remote.Format, Time: time.Unix(1, 0)}
		if err := r.Save(t.Context(), &s, strings.NewReader("a snapshot")); err != nil {
			t.Fatal(err)
		}
		snapshots[s.ID] = true
		return s.ID
	}
	for range 6 {
		at := len(l.Pieces)
		l.Grow(20, epoch)
		remotetest.Append(t, r, l.Pieces[at:]...)
		from := max(0, at-10)
		if _, err := r.Prune(t.Context(), epoch, l.Pieces[from].From.LSN); err != nil {
			t.Fatal(err)
		}
		remotetest.Compare(t, b.open("p"), epoch, l.Pieces[from].From.LSN, l.Pieces[from:])
		id := save()
		save()
		if err := r.Drop(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		delete(snapshots, id)
		list, err := r.Snapshots(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			if !snapshots[s.ID] {
				t.Errorf("snapshot %v is gone", s.ID)
			}
		}
	}
	if lags < 6 {
		t.Errorf("the test has delayed only %d listings", lags)
	}
	b.with(func() { b.before = nil })
	if list, err := r.Snapshots(t.Context()); err != nil || len(list) != len(snapshots) {
		t.Errorf("%d snapshots, want %d, %v", len(list), len(snapshots), err)
	}
	last := l.Pieces[len(l.Pieces)-5:]
	if _, err := r.Prune(t.Context(), epoch, last[0].From.LSN); err != nil {
		t.Fatal(err)
	}
	for _, key := range b.keys("p/data/") {
		for _, p := range l.Pieces[:len(l.Pieces)-20] {
			if bytes.Contains(b.get(key), p.Bytes[:64]) { // a header, with its checksum
				t.Fatalf("%s has bytes of a piece that was pruned", key)
			}
		}
	}
	remotetest.Compare(t, b.open("p"), epoch, last[0].From.LSN, last)
}

// A writer that has stored its objects sleeps before it stores the head, and a prune meanwhile removes its objects: it
// is refused, stores them again, and its piece is whole.
func TestPruneBesideSleepingWriter(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	awake, sleeper := s3.Small(b.create("p")), s3.Small(b.open("p"))
	l := remotetest.NewLog(1)
	epoch := begin(t, awake, l)
	l.Grow(30, epoch)
	remotetest.Append(t, awake, l.Pieces...)
	for range 12 {
		at := len(l.Pieces)
		l.Grow(1, epoch)
		slept := false
		b.with(func() {
			b.before = func(w http.ResponseWriter, r *http.Request) bool {
				if !isHead(r) || slept {
					return false
				}
				slept = true
				b.mu.Unlock()
				defer b.mu.Lock()
				if _, err := awake.Prune(context.Background(), epoch, l.Pieces[20].From.LSN); err != nil {
					t.Error(err)
				}
				return false
			}
		})
		if err := sleeper.Append(t.Context(), &l.Pieces[at]); err != nil {
			t.Fatal(err)
		}
		b.with(func() { b.before = nil })
		remotetest.Compare(t, b.open("p"), epoch, l.Pieces[20].From.LSN, l.Pieces[20:])
	}
}

// A reader goes on while objects that it is about to read become parts of lists, or are pruned.
func TestReaderBesidePrune(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	r := s3.Small(b.create("p"))
	l := remotetest.NewLog(1)
	epoch := begin(t, r, l)
	l.Grow(60, epoch)
	remotetest.Append(t, r, l.Pieces...)
	i := 0
	for p, err := range b.open("p").Read(t.Context(), epoch, l.Start.LSN) {
		if i >= 40 && errors.Is(err, errs.ErrTruncated) { // pruned beyond where the reader is
			return
		}
		if err != nil || p.From != l.Pieces[i].From || !bytes.Equal(p.Bytes, l.Pieces[i].Bytes) {
			t.Fatalf("piece %d: from %v, %v", i, p.From, err)
		}
		if i++; i < 40 && i%5 == 0 {
			if _, err := r.Prune(t.Context(), epoch, p.To.LSN); err != nil {
				t.Fatal(err)
			}
			l.Grow(6, epoch)
			remotetest.Append(t, r, l.Pieces[len(l.Pieces)-6:]...)
		}
		if i == 40 {
			if _, err := r.Prune(t.Context(), epoch, l.Pieces[70].From.LSN); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Error("a reader whose pieces were pruned ended without an error")
}

// An object store that ignores conditions, or compares them too early, is refused.
func TestUnsuitable(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(b *bucket){
		"ignores conditions":  func(b *bucket) { b.blind = true },
		"compares them early": func(b *bucket) { b.early = true },
		"knows no conditions": func(b *bucket) {
			b.before = func(w http.ResponseWriter, r *http.Request) bool {
				return r.Header.Get("If-None-Match") != "" && fail(w, http.StatusNotImplemented, "NotImplemented")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBucket(t)
			b.with(func() { set(b) })
			o := b.options("p")
			o.Sleep = nil // the usual one
			_, err := s3.Create(t.Context(), o)
			if !errors.Is(err, remote.ErrUnsuitable) {
				t.Error(err)
			}
			if left := b.keys(""); len(left) > 0 {
				t.Error("objects are left:", left)
			}
		})
	}
}

// What an object store answers is one of the kinds of errors, with a remedy.
func TestErrors(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	r := b.create("p")
	l := remotetest.NewLog(1)
	epoch := begin(t, r, l)
	l.Grow(2, epoch)
	for _, c := range []struct {
		status int
		code   string
		want   error
		remedy string
	}{
		{403, "AccessDenied", errs.ErrPermission, "credentials"},
		{403, "InvalidAccessKeyId", errs.ErrPermission, "credentials"},
		{403, "RequestTimeTooSkewed", errs.ErrPermission, "clock"},
		{404, "NoSuchBucket", remote.ErrNoRemote, "bucket"},
		{507, "XMinioStorageFull", errs.ErrDiskFull, "quota"},
		{400, "QuotaExceeded", errs.ErrDiskFull, "quota"},
	} {
		b.with(func() {
			b.before = func(w http.ResponseWriter, r *http.Request) bool {
				return isHead(r) && fail(w, c.status, c.code)
			}
		})
		err := r.Append(t.Context(), &l.Pieces[0])
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.remedy) || errors.Is(err, remote.ErrMoved) {
			t.Errorf("%s: %v", c.code, err)
		}
	}
	b.with(func() { b.before = nil })
	remotetest.Append(t, r, l.Pieces...)

	if _, err := s3.Open(t.Context(), b.options("q")); !errors.Is(err, remote.ErrNoRemote) {
		t.Error(err)
	}
	b.put("q/other", []byte("of the user"))
	if _, err := s3.Create(t.Context(), b.options("q")); !errors.Is(err, errs.ErrInvalid) {
		t.Error(err)
	}
	if again, err := s3.Create(t.Context(), b.options("p")); err != nil || again.ID() != r.ID() {
		t.Error("created again:", err)
	}
	b.remove("p/head")
	b.create("p2")
	b.put("p/head", b.get("p2/head"))
	if err := r.Append(t.Context(), &l.Pieces[1]); !errors.Is(err, remote.ErrNoRemote) {
		t.Error("another remote in its place:", err)
	}
}

// A damaged, cut or missing object is an error that names it; what is beside it is read.
func TestDamage(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	r := s3.Small(b.create("p"))
	l := remotetest.NewLog(1)
	epoch := begin(t, r, l)
	l.Grow(40, epoch)
	remotetest.Append(t, r, l.Pieces...)
	for _, key := range b.keys("p/") {
		whole := b.get(key)
		for name, damaged := range map[string][]byte{
			"flipped": flipped(whole, len(whole)/2), "cut": whole[:len(whole)-1], "empty": {}, "missing": nil,
		} {
			if damaged == nil {
				b.remove(key)
			} else {
				b.put(key, damaged)
			}
			got, bad := read(t, b, epoch, l.Start.LSN)
			if bad == nil {
				t.Errorf("%s %s: no error", key, name)
			} else if gone := strings.HasSuffix(key, "head") && errors.Is(bad, remote.ErrNoRemote); !gone &&
				!errors.Is(bad, errs.ErrCorrupt) {
				t.Errorf("%s %s: %v", key, name, bad)
			}
			if strings.Contains(key, "data/") && (name == "flipped" || name == "missing") && len(got) < len(l.Pieces)-8 {
				t.Errorf("%s %s: only %d pieces are read", key, name, len(got))
			}
			i := 0
			for _, p := range got {
				for i < len(l.Pieces) && l.Pieces[i].From != p.From {
					i++
				}
				if i == len(l.Pieces) || !bytes.Equal(l.Pieces[i].Bytes, p.Bytes) {
					t.Fatalf("%s %s: a piece from %v was read that was never appended", key, name, p.From)
				}
			}
			b.put(key, whole)
		}
	}
	remotetest.Compare(t, b.open("p"), epoch, l.Start.LSN, l.Pieces)
}

func flipped(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 1
	return b
}

// read returns the pieces that can be read, and the first error.
func read(t *testing.T, b *bucket, epoch uint64, from segment.LSN) (got []remote.Piece, bad error) {
	t.Helper()
	r, err := s3.Open(t.Context(), b.options("p"))
	if err != nil {
		return nil, err
	}
	for p, err := range r.Read(t.Context(), epoch, from) {
		if err != nil {
			if bad == nil {
				bad = err
			}
			continue
		}
		p.Bytes = bytes.Clone(p.Bytes)
		got = append(got, p)
	}
	return got, bad
}

// What is signed correctly is checked too: no name leads out of the remote, and no number to memory that is not there.
func TestForged(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	r := s3.Small(b.create("p"))
	l := remotetest.NewLog(1)
	epoch := begin(t, r, l)
	l.Grow(9, epoch)
	remotetest.Append(t, r, l.Pieces...)
	b.put("p/secret", []byte("of the user"))
	whole := b.get("p/head")
	text := string(s3.Text(whole))
	for _, change := range [][2]string{
		{`"size":`, `"size":9`}, {`"size":`, `"size":-`}, {`"at":`, `"at":99`}, {`"at":`, `"at":-1`},
		{`"object":"data/`, `"object":"../`}, {`"object":"data/`, `"object":"secret`}, {`"number":`, `"number":7`},
		{`"epoch":`, `"epoch":-`}, {`"time":`, `"time":-`}, {`"segment_size":`, `"segment_size":1`},
		{`"at":`, `"at":922337203685477580`}, {`"end":`, `"end":1`},
		{`"kind":"piece"`, `"kind":"anchor"`}, {`"kind":"piece"`, `"kind":"x"`}, {`"lsn":`, `"lsn":9`},
		{`"format":1`, `"format":2`}, {`"level":0`, `"level":1`}, {`"level":0`, `"level":9`}, {`{`, `[`},
	} {
		if !strings.Contains(text, change[0]) {
			t.Fatalf("the head has no %s: %s", change[0], text)
		}
		b.put("p/head", s3.Sign(whole, []byte(strings.Replace(text, change[0], change[1], 1))))
		b.with(func() { b.requests = nil })
		if _, err := read(t, b, epoch, l.Start.LSN); err == nil {
			t.Errorf("%v: no error", change)
		}
		b.with(func() {
			for _, q := range b.requests {
				if key, ok := strings.CutPrefix(q, "GET p/"); !ok || key != "head" &&
					!strings.HasPrefix(key, "data/") && !strings.HasPrefix(key, "lists/") {
					t.Errorf("%v: request %s", change, q)
				}
			}
		})
	}
	b.put("p/head", whole)
	remotetest.Compare(t, b.open("p"), epoch, l.Start.LSN, l.Pieces)
}

// FuzzHead reads heads with any JSON, signed.
func FuzzHead(f *testing.F) {
	b := newBucket(f)
	r := s3.Small(b.create("p"))
	l := remotetest.NewLog(1)
	epoch, err := r.Begin(f.Context(), l.Anchor(f, remote.Position{}))
	if err != nil {
		f.Fatal(err)
	}
	l.Grow(9, epoch)
	remotetest.Append(f, r, l.Pieces...)
	whole := b.get("p/head")
	f.Add(s3.Text(whole))
	f.Add([]byte(`{"format":1,"remote":"00000000-0000-0000-0000-000000000001","lists":[{}],"entries":[{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		b.put("p/head", s3.Sign(whole, text))
		r, err := s3.Open(t.Context(), b.options("p"))
		if err != nil {
			return
		}
		for _, err := range r.Read(t.Context(), epoch, l.Start.LSN) {
			if err != nil {
				break
			}
		}
		_, _ = r.Epochs(t.Context())
	})
}

// The bytes of a snapshot are read at any place, in one part and across two.
func TestSnapshotParts(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	r := b.create("p")
	l := remotetest.NewLog(1)
	epoch := begin(t, r, l)
	data := make([]byte, 33<<20+5)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := 0; i < len(data); i += 4 + rng.IntN(64) {
		data[i] = byte(rng.Uint32())
	}
	s := &remote.Snapshot{ID: remotetest.NewID(t), Geometry: l.Geometry, Epoch: epoch,
		Begin: l.Start, End: l.Start, Format: remote.Format, Time: time.Unix(1, 0)}
	if err := r.Save(t.Context(), s, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	body, err := b.open("p").Open(t.Context(), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	for _, at := range []int64{0, 1, 16<<20 - 3, 16 << 20, 32<<20 - 1, 33<<20 + 4} {
		got := make([]byte, 5000)
		n, err := body.ReadAt(got, at)
		want := data[at:min(int(at)+len(got), len(data))]
		if !bytes.Equal(got[:n], want) || (n < len(got)) != (err == io.EOF) {
			t.Errorf("at %d: %d bytes, %v", at, n, err)
		}
	}
	b.remove(fmt.Sprintf("p/snapshots/%s/00000001", s.ID))
	if _, err := body.ReadAt(make([]byte, 10), 17<<20); !errors.Is(err, errs.ErrCorrupt) {
		t.Error("a missing part:", err)
	}
}

// When an epoch ends because of a purge, a prune leaves none of its bytes, wherever they were.
func TestPruneLeavesNoBytes(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	r := b.create("p")
	l := remotetest.NewLog(1)
	one := begin(t, r, l)
	l.Grow(5, one)
	remotetest.Append(t, r, l.Pieces...)
	next := remotetest.NewLog(2)
	two := begin(t, r, next)
	for range 3 {
		next.Grow(100, two)
		remotetest.Append(t, r, next.Pieces[len(next.Pieces)-100:]...)
		if _, err := r.Prune(t.Context(), two, next.Start.LSN); err != nil {
			t.Fatal(err)
		}
		for _, key := range b.keys("p/") {
			for _, p := range l.Pieces {
				if bytes.Contains(b.get(key), p.Bytes[:64]) { // a header, with its checksum
					t.Fatalf("%s has bytes of the epoch before", key)
				}
			}
		}
	}
	remotetest.Compare(t, b.open("p"), two, next.Pieces[0].To.LSN, next.Pieces[1:])
}

// A source that is cut off is no snapshot; one that is there already is not replaced, nor are its bytes removed; a lost
// answer to any of the requests is no error.
func TestSave(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	r := b.create("p")
	l := remotetest.NewLog(1)
	epoch := begin(t, r, l)
	snapshot := func() *remote.Snapshot {
		return &remote.Snapshot{ID: remotetest.NewID(t), Geometry: l.Geometry, Epoch: epoch, Begin: l.Start, End: l.Start,
			Format: remote.Format, Time: time.Unix(1, 0)}
	}
	for _, cut := range []error{io.ErrUnexpectedEOF, fmt.Errorf("reading: %w", io.EOF)} {
		err := r.Save(t.Context(), snapshot(), io.MultiReader(strings.NewReader("half"), iotest.ErrReader(cut)))
		if !errors.Is(err, cut) {
			t.Errorf("cut off with %v: %v", cut, err)
		}
	}
	if left := b.keys("p/snapshots"); len(left) > 0 {
		t.Error("objects are left:", left)
	}
	b.with(func() {
		lost := map[string]bool{}
		b.lose = func(r *http.Request) bool {
			first := r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/snapshots/") && !lost[r.URL.Path]
			lost[r.URL.Path] = true
			return first
		}
	})
	s, data := snapshot(), bytes.Repeat([]byte("x"), 17<<20)
	if err := r.Save(t.Context(), s, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	b.with(func() { b.lose = nil })
	again := *s
	if err := r.Save(t.Context(), &again, strings.NewReader("other")); !errors.Is(err, errs.ErrInvalid) {
		t.Error("saved again:", err)
	}
	body, err := r.Open(t.Context(), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	got, err := io.ReadAll(io.NewSectionReader(body, 0, body.Size()))
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// A prune sweeps nothing that belongs to a remote below its prefix.
func TestSweepSparesOthers(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	o := b.options("p")
	o.Clock = func() time.Time { return time.Now().Add(1000 * time.Hour) }
	if _, err := s3.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	b.put("p/snapshots/user/file", []byte("of the user"))
	left := "p/snapshots/" + remotetest.NewID(t).String() + "/00000000"
	b.put(left, []byte("of a killed process"))
	r, err := s3.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	l := remotetest.NewLog(1)
	epoch := begin(t, r, l)
	if _, err := r.Prune(t.Context(), epoch, l.Start.LSN); err != nil {
		t.Fatal(err)
	}
	if keys := b.keys("p/snapshots"); len(keys) != 1 || keys[0] != "p/snapshots/user/file" {
		t.Error(keys)
	}
}

// TestClaimedSize: the answer to a request claims more bytes than arrive, or than a piece can have. Reading takes
// memory in proportion to what arrives.
func TestClaimedSize(t *testing.T) {
	b := newBucket(t)
	r := s3.Small(b.create("p"))
	l := remotetest.NewLog(1)
	l.Geometry.Size = segment.MaxSize // the largest pieces are possible
	l.Start.LSN = l.Geometry.Start(1)
	l.End = l.Start
	epoch := begin(t, r, l)
	l.Grow(30, epoch)
	remotetest.Append(t, r, l.Pieces...)
	for _, c := range []struct {
		claimed int64
		want    error
	}{{500 << 20, io.ErrUnexpectedEOF}, {segment.MaxSize, errs.ErrCorrupt}} {
		b.with(func() {
			b.before = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/p/data/") {
					return false
				}
				w.Header().Set("Content-Length", strconv.FormatInt(c.claimed, 10))
				w.Header().Set("Last-Modified", "Mon, 02 Nov 2026 00:00:00 GMT")
				w.Header().Set("ETag", `"00000000000000000000000000000000"`)
				_, _ = w.Write(make([]byte, 100))
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
		})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var err error
		for _, rerr := range b.open("p").Read(t.Context(), epoch, l.Start.LSN) {
			if rerr != nil {
				err = rerr
				break
			}
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, c.want) || took > 64<<20 {
			t.Errorf("%d bytes are claimed: %d MiB of memory, %v", c.claimed, took>>20, err)
		}
	}
}
