package sealed

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/uuid"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
	"github.com/varve-db/varve/remote/dir"
	"github.com/varve-db/varve/remote/remotetest"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/wal/past"
)

// keys are the keys of one copy.
type keys struct {
	machine  ed25519.PrivateKey
	identity *age.X25519Identity
	chain    []byte
}

func newKeys(t *testing.T) keys {
	t.Helper()
	_, machine, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return keys{machine: machine, identity: id, chain: bytes.Repeat([]byte{7}, KeySize)}
}

func (k *keys) signer() ed25519.PublicKey { return k.machine.Public().(ed25519.PublicKey) }

// writer are the keys of the machine that writes.
func (k *keys) writer() Options {
	return Options{Chain: k.chain, Sign: k.machine, Signers: []ed25519.PublicKey{k.signer()},
		Recipients: []string{k.identity.Recipient().String()},
		Seal:       func(w io.Writer) (io.WriteCloser, error) { return age.Encrypt(w, k.identity.Recipient()) }}
}

// reader are the keys of somebody who restores.
func (k *keys) reader() Options {
	return Options{Signers: []ed25519.PublicKey{k.signer()}, Unseal: func(s io.ReaderAt, n int64) (io.ReaderAt, int64,
		error) {
		return age.DecryptReaderAt(s, n, k.identity)
	}}
}

func (k *keys) both() Options {
	o := k.writer()
	o.Unseal = k.reader().Unseal
	return o
}

func open(t *testing.T, folder string, o Options) *Remote {
	t.Helper()
	in, err := dir.Open(t.Context(), folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	r, err := Open(t.Context(), in, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func place(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	r, err := dir.Create(t.Context(), folder, nil)
	if err == nil {
		err = r.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestConformance runs the tests that every Remote passes.
func TestConformance(t *testing.T) {
	remotetest.Run(t, func(t *testing.T) func() remote.Remote {
		k, folder := newKeys(t), place(t)
		return func() remote.Remote { return open(t, folder, k.both()) }
	})
}

const secret = "the secret that only the recipient reads"

// sent makes a sealed copy with pieces and a snapshot.
func sent(t *testing.T, k *keys) (folder string, l *remotetest.Log, s remote.Snapshot) {
	t.Helper()
	folder = place(t)
	r := open(t, folder, k.writer())
	l = remotetest.NewLog(1)
	epoch, err := r.Begin(t.Context(), l.Anchor(t, remote.Position{}))
	if err != nil {
		t.Fatal(err)
	}
	l.Grow(5, epoch)
	remotetest.Append(t, r, l.Pieces...)
	s = remote.Snapshot{ID: remotetest.NewID(t), Geometry: l.Geometry, Log: 3, Epoch: epoch, Begin: l.Start, End: l.End,
		Machine: uuid.UUID{9}, Format: remote.Format, Time: time.UnixMicro(5).UTC()}
	if err := r.Save(t.Context(), &s, bytes.NewReader(bytes.Repeat([]byte(secret), 10_000))); err != nil {
		t.Fatal(err)
	}
	if err := r.Register(t.Context(), remote.Machine{ID: uuid.UUID{9}, Name: "laptop-of-anna"}); err != nil {
		t.Fatal(err)
	}
	return folder, l, s
}

// TestReader verifies that the identity and the key of the machine are enough to read a copy, and to go on with it.
func TestReader(t *testing.T) {
	k := newKeys(t)
	folder, l, s := sent(t, &k)
	r := open(t, folder, k.reader())
	if !bytes.Equal(r.ChainKey(), k.chain) || !slices.Equal(r.Recipients(), k.writer().Recipients) {
		t.Errorf("learned %x, %q", r.ChainKey(), r.Recipients())
	}
	remotetest.Compare(t, r, 1, l.Start.LSN, l.Pieces)
	b, err := r.Open(t.Context(), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(io.NewSectionReader(b, 0, b.Size()))
	if err := errors.Join(err, b.Close()); err != nil || !bytes.Equal(got, bytes.Repeat([]byte(secret), 10_000)) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	if err := r.Append(t.Context(), &l.Pieces[0]); !errors.Is(err, ErrUnable) {
		t.Error("a reader appended:", err)
	}
	if _, err := open(t, folder, k.writer()).Open(t.Context(), s.ID); !errors.Is(err, ErrUnable) {
		t.Error("the machine that writes opened a snapshot:", err)
	}
	checker := k.writer()
	checker.Chain, checker.Sign, checker.Seal = nil, nil, nil
	for name, o := range map[string]Options{"writer": k.writer(), "reader": k.reader(), "checker": checker} {
		v, err := remote.Verify(t.Context(), open(t, folder, o), true)
		if err != nil || !v.Restorable || v.Pieces != 5 || len(v.Damage) > 0 {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
}

// TestNothingPlain verifies that the files of the place have nothing of what was sent.
func TestNothingPlain(t *testing.T) {
	k := newKeys(t)
	folder, l, _ := sent(t, &k)
	var hidden [][]byte
	for _, text := range []string{secret, "laptop", k.identity.Recipient().String(), "chain"} {
		hidden = append(hidden, []byte(text))
	}
	for _, p := range l.Pieces {
		hidden = append(hidden, p.Bytes[:64])
		for _, m := range []past.Mark{p.From, p.To} {
			if m.Sum != 0 {
				sum := make([]byte, 8)
				for i := range sum {
					sum[i] = byte(m.Sum >> (8 * i))
				}
				hidden = append(hidden, sum)
			}
		}
	}
	hidden = append(hidden, k.chain)
	files := 0
	err := filepath.WalkDir(folder, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files++
		b, err := os.ReadFile(name)
		for _, h := range hidden {
			if bytes.Contains(b, h) {
				t.Errorf("%s contains %q", name, h)
			}
		}
		return err
	})
	if err != nil || files < 7 {
		t.Error(files, err)
	}
}

// forger is a place whose keeper changes what is read from it.
type forger struct {
	remote.Remote
	piece    func(p *remote.Piece)
	snapshot func(s *remote.Snapshot)
	body     func(b []byte) []byte
}

func (f *forger) Read(ctx context.Context, epoch uint64, from segment.LSN) iter.Seq2[remote.Piece, error] {
	return func(yield func(remote.Piece, error) bool) {
		for p, err := range f.Remote.Read(ctx, epoch, from) {
			p.Bytes = bytes.Clone(p.Bytes)
			if f.piece != nil {
				f.piece(&p)
			}
			if !yield(p, err) {
				return
			}
		}
	}
}

func (f *forger) Snapshots(ctx context.Context) ([]remote.Snapshot, error) {
	list, err := f.Remote.Snapshots(ctx)
	for i := range list {
		if f.snapshot != nil {
			f.snapshot(&list[i])
		}
	}
	return list, err
}

type forged struct{ *bytes.Reader }

func (forged) Close() error { return nil }

func (f *forger) Open(ctx context.Context, id uuid.UUID) (remote.Body, error) {
	b, err := f.Remote.Open(ctx, id)
	if err != nil || f.body == nil {
		return b, err
	}
	all, err := io.ReadAll(io.NewSectionReader(b, 0, b.Size()))
	return forged{bytes.NewReader(f.body(all))}, errors.Join(err, b.Close())
}

// TestForged verifies that nothing is returned that the place, which knows the recipients, has changed.
func TestForged(t *testing.T) {
	k := newKeys(t)
	folder, l, s := sent(t, &k)
	attacker := newKeys(t)
	attacker.identity, attacker.chain = k.identity, k.chain // more than the place has
	other, _, theirs := sent(t, &attacker)
	in, err := dir.Open(t.Context(), folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	resealed := func(b []byte) []byte {
		a, err := dir.Open(t.Context(), other, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		body, err := a.Open(t.Context(), theirs.ID)
		if err != nil {
			t.Fatal(err)
		}
		defer body.Close()
		all, err := io.ReadAll(io.NewSectionReader(body, 0, body.Size()))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	first := map[int]remote.Piece{}
	n := 0
	for name, f := range map[string]*forger{
		"encrypted byte":       {piece: func(p *remote.Piece) { p.Bytes[300] ^= 1 }},
		"statement":            {piece: func(p *remote.Piece) { p.Bytes[len(p.Bytes)-100] ^= 1 }},
		"signature":            {piece: func(p *remote.Piece) { p.Bytes[len(p.Bytes)-1] ^= 1 }},
		"cut":                  {piece: func(p *remote.Piece) { p.Bytes = p.Bytes[:len(p.Bytes)-1] }},
		"shorter":              {piece: func(p *remote.Piece) { p.Bytes = p.Bytes[1:] }},
		"empty":                {piece: func(p *remote.Piece) { p.Bytes = p.Bytes[:10] }},
		"position":             {piece: func(p *remote.Piece) { p.To.LSN += 8 }},
		"chain hash":           {piece: func(p *remote.Piece) { p.From.Sum++ }},
		"time":                 {piece: func(p *remote.Piece) { p.Time = p.Time.Add(time.Second) }},
		"epoch":                {piece: func(p *remote.Piece) { p.Epoch++ }},
		"plain":                {piece: func(p *remote.Piece) { p.Format = 1 }},
		"of another position":  {piece: func(p *remote.Piece) { first[n] = *p; p.Bytes = first[0].Bytes; n++ }},
		"snapshot's end":       {snapshot: func(s *remote.Snapshot) { s.End.LSN += 8 }},
		"snapshot's epoch":     {snapshot: func(s *remote.Snapshot) { s.Epoch++ }},
		"snapshot's time":      {snapshot: func(s *remote.Snapshot) { s.Time = s.Time.Add(time.Second) }},
		"snapshot's log":       {snapshot: func(s *remote.Snapshot) { s.Log++ }},
		"plain snapshot":       {snapshot: func(s *remote.Snapshot) { s.Format = 1 }},
		"snapshot's byte":      {body: func(b []byte) []byte { b[len(b)/2] ^= 1; return b }},
		"snapshot is cut":      {body: func(b []byte) []byte { return b[:len(b)-70_000] }},
		"snapshot is empty":    {body: func(b []byte) []byte { return nil }},
		"snapshot's signature": {body: func(b []byte) []byte { b[len(b)-1] ^= 1; return b }},
		"snapshot of another":  {body: resealed},
	} {
		f.Remote = in
		o := k.reader()
		o.Chain = k.chain
		r, err := Open(t.Context(), f, o)
		if err != nil {
			t.Fatal(err)
		}
		if f.piece != nil {
			good := 0
			for p, err := range r.Read(t.Context(), 1, l.Start.LSN) {
				if err == nil && !bytes.Equal(p.Bytes, l.Pieces[good].Bytes) {
					t.Errorf("%s: another piece was returned", name)
				}
				if err == nil {
					good++
				} else if !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, ErrForged) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if good > 1 || good == 1 && name != "of another position" {
				t.Errorf("%s: %d pieces were returned", name, good)
			}
		} else if b, err := r.Open(t.Context(), s.ID); err == nil {
			t.Errorf("%s: the snapshot was opened", name)
			_ = b.Close()
		} else if !errors.Is(err, errs.ErrCorrupt) && !errors.Is(err, ErrForged) {
			t.Errorf("%s: %v", name, err)
		}
		if v, err := remote.Verify(t.Context(), r, true); err == nil && v.Restorable {
			t.Errorf("%s: the copy is restorable", name)
		}
		o.Unseal = nil
		blind, err := Open(t.Context(), f, o)
		if err != nil {
			t.Fatal(err)
		}
		n = 0
		if v, err := remote.Verify(t.Context(), blind, true); err == nil && v.Restorable {
			t.Errorf("%s: the copy is restorable, without an identity", name)
		}
	}
}

// turning is a place that returns other bytes, or another listing, from the second time on.
type turning struct {
	remote.Remote
	bytes func() []byte
	lists int
}

// turned is a body that is another one once it was read to its end.
type turned struct {
	remote.Body
	other []byte
	read  bool
}

func (b *turned) ReadAt(p []byte, off int64) (int, error) {
	if b.read {
		return bytes.NewReader(b.other).ReadAt(p, off)
	}
	n, err := b.Body.ReadAt(p, off)
	b.read = off+int64(n) >= b.Body.Size()-statementSize && off > 0 && n > statementSize
	return n, err
}

func (f *turning) Open(ctx context.Context, id uuid.UUID) (remote.Body, error) {
	b, err := f.Remote.Open(ctx, id)
	if err != nil || f.bytes == nil {
		return b, err
	}
	return &turned{Body: b, other: f.bytes()}, nil
}

func (f *turning) Snapshots(ctx context.Context) ([]remote.Snapshot, error) {
	list, err := f.Remote.Snapshots(ctx)
	if f.lists++; f.bytes == nil && f.lists == 1 {
		list[0].Begin.LSN, list[0].End.LSN = list[0].Begin.LSN+8, list[0].End.LSN+8
	}
	return list, err
}

// TestTurned verifies that a place cannot show one thing when it is verified, and another when it is used.
func TestTurned(t *testing.T) {
	k := newKeys(t)
	folder, _, s := sent(t, &k)
	in, err := dir.Open(t.Context(), folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	forged := func() []byte { // encrypted to the same recipient, and as long
		var out bytes.Buffer
		w, err := k.writer().Seal(&out)
		if err != nil {
			t.Fatal(err)
		}
		h := header{Chain: k.chain, Recipients: k.writer().Recipients}
		begin, err := h.encode()
		if err == nil {
			_, err = w.Write(append(begin, bytes.Repeat([]byte("forged"), 80_000)...))
		}
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	o := k.reader()
	o.Chain = k.chain
	r, err := Open(t.Context(), &turning{Remote: in, bytes: forged}, o)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := r.Open(t.Context(), s.ID); err == nil {
		got, err := io.ReadAll(io.NewSectionReader(b, 0, b.Size()))
		t.Errorf("%d bytes, %v: %.20q", len(got), err, got)
		_ = b.Close()
	} else if !errors.Is(err, errs.ErrCorrupt) {
		t.Error(err)
	}
	if r, err = Open(t.Context(), &turning{Remote: in}, o); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Snapshots(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b, err := r.Open(t.Context(), s.ID); !errors.Is(err, errs.ErrCorrupt) {
		t.Errorf("what was listed is not what was signed: %v", err)
		if err == nil {
			_ = b.Close()
		}
	}
}

// TestOtherSigner verifies that what another machine has signed is refused with the key, and that nothing of it is
// opened.
func TestOtherSigner(t *testing.T) {
	k := newKeys(t)
	folder, l, s := sent(t, &k)
	o := k.reader()
	o.Signers = []ed25519.PublicKey{newKeyOf(t)}
	in, err := dir.Open(t.Context(), folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	want := func(err error) {
		t.Helper()
		no := (*SignerError)(nil)
		if !errors.As(err, &no) || !no.Signer.Equal(k.signer()) {
			t.Error(err)
		}
	}
	_, err = Open(t.Context(), in, o)
	want(err)
	o.Chain = k.chain
	r := open(t, folder, o)
	for _, err := range r.Read(t.Context(), 1, l.Start.LSN) {
		want(err)
	}
	_, err = r.Open(t.Context(), s.ID)
	want(err)
	key, err := ParseKey(FormatKey(k.signer()))
	if err != nil || !key.Equal(k.signer()) {
		t.Error(key, err)
	}
	for _, text := range []string{"", "ed25519-", "ed25519-AAAA", FormatKey(key) + "A", "x" + FormatKey(key)} {
		if _, err := ParseKey(text); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func newKeyOf(t *testing.T) ed25519.PublicKey {
	k := newKeys(t)
	return k.signer()
}

// TestPlainCopy verifies that a copy that is not sealed is refused where a sealed one is asked for.
func TestPlainCopy(t *testing.T) {
	k, folder, l := newKeys(t), place(t), remotetest.NewLog(1)
	in, err := dir.Open(t.Context(), folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	epoch, err := in.Begin(t.Context(), l.Anchor(t, remote.Position{}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), in, k.reader()); !errors.Is(err, ErrForged) {
		t.Error(err)
	}
	r := open(t, folder, k.writer())
	if _, err := r.Head(t.Context()); !errors.Is(err, ErrForged) {
		t.Error(err)
	}
	l.Grow(1, epoch)
	if err := r.Append(t.Context(), &l.Pieces[0]); !errors.Is(err, ErrForged) {
		t.Error(err)
	}
}

// losing is a place whose answers are lost.
type losing struct {
	remote.Remote
	got [][]byte
}

var errLost = errors.New("the answer was lost")

func (f *losing) Append(_ context.Context, p *remote.Piece) error {
	f.got = append(f.got, bytes.Clone(p.Bytes))
	return errLost
}

// TestSealedOnce verifies that a piece whose answer was lost is sent again with the same bytes.
func TestSealedOnce(t *testing.T) {
	k := newKeys(t)
	folder := place(t)
	in, err := dir.Open(t.Context(), folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	f := &losing{Remote: in}
	r, err := Open(t.Context(), f, k.writer())
	if err != nil {
		t.Fatal(err)
	}
	l := remotetest.NewLog(1)
	epoch, err := r.Begin(t.Context(), l.Anchor(t, remote.Position{}))
	if err != nil {
		t.Fatal(err)
	}
	l.Grow(2, epoch)
	for _, i := range []int{0, 0, 1} {
		p := l.Pieces[i]
		p.Request = remotetest.NewID(t)
		p.Time = p.Time.Add(time.Minute)
		if err := r.Append(t.Context(), &p); !errors.Is(err, errLost) {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(f.got[0], f.got[1]) || bytes.Equal(f.got[1], f.got[2]) {
		t.Error("a piece was sealed twice")
	}
}

// TestMask verifies that masks are a permutation for each position, and depend on the key.
func TestMask(t *testing.T) {
	one, err := newChain([KeySize]byte{1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	two, err := newChain([KeySize]byte{2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uint64]bool{}
	for i := range uint64(2000) {
		m := past.Mark{LSN: i/2 + 1, Sum: i % 2}
		masked := one.mask(m)
		if one.unmask(masked) != m || masked.LSN != m.LSN {
			t.Fatal(m, masked)
		}
		if seen[masked.Sum] || masked == two.mask(m) {
			t.Errorf("%v: %v again", m, masked)
		}
		seen[masked.Sum] = true
	}
	if one.mask(past.Mark{}) != (past.Mark{}) {
		t.Error("the mark before everything is masked")
	}
}

// TestKnown verifies that a copy that ends before a noted position is refused.
func TestKnown(t *testing.T) {
	head := remote.Position{Epoch: 3, At: past.Mark{LSN: 500}}
	for text, older := range map[string]bool{"3:500": false, "3:499": false, "2:900": false, "3:501": true, "4:1": true} {
		k, err := ParseKnown(text)
		if err != nil || k.String() != text {
			t.Error(k, err)
		}
		if err := k.Check("x", &head); errors.Is(err, ErrForged) != older {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{"", "3", "3:", "0:1", "3:4x", "3:4:5", "-1:4", "3.4"} {
		if k, err := ParseKnown(text); !errors.Is(err, errs.ErrInvalid) {
			t.Errorf("%q: %v, %v", text, k, err)
		}
	}
}
