package storm

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/acklog"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/internal/storetest"
	"github.com/varve-db/varve/internal/vfs"
)

var (
	images      = flag.String("images", "", "file systems for TestImages, e.g. ext4,xfs,btrfs; none: it does nothing")
	imageCopies = flag.Int("images.copies", 10, "how many moments of each load TestImages looks at")
)

// otherBoot is the machine after its power has returned.
type otherBoot struct{ vfs.FS }

func (o otherBoot) Host() vfs.Host {
	h := o.FS.Host()
	h.Boot[0] ^= 1
	return h
}

// diskCopy is a copy of the disk, and what had been acknowledged before it was made.
type diskCopy struct {
	image   string
	since   map[string]int
	counted int
}

// A real file system on a loop device is copied, as its disk is at random moments of
// a load of several processes; what only the page cache held is not in the copy. Each
// copy is mounted, which replays its journal, and opened as after a power cut: all that
// had been acknowledged by then is there.
//
// The copies are made in one step, by reflink, so the images are on an xfs of their own. The test
// requires root, mount, mkfs.xfs (Debian: xfsprogs), mkfs.btrfs (btrfs-progs) and 2 GB in TMPDIR:
//
//	go test -run TestImages ./tests/storm -images ext4,xfs,btrfs -v
func TestImages(t *testing.T) {
	if *images == "" {
		return
	}
	host := filepath.Join(t.TempDir(), "host")
	mountImage(t, makeImage(t, host+".img", "xfs", 8<<30), host)
	for _, fs := range strings.Split(*images, ",") {
		t.Run(fs, func(t *testing.T) { imagesOf(t, fs, host) })
	}
}

func imagesOf(t *testing.T, fs, host string) {
	seed := proofs.Seed(t, *stormSeed)
	disk, at := filepath.Join(host, fs+".img"), filepath.Join(t.TempDir(), "disk")
	makeImage(t, disk, fs, 1<<30)
	unmount := mountImage(t, disk, at)
	s := &storm{t: t, dir: filepath.Join(at, "store"), rng: rand.New(rand.NewPCG(seed, 1)), told: acklog.New()}
	s.create()
	moments := s.moments(disk)
	unmount()
	c := &s.told.Counter
	worst, torn, aside := 0, 0, 0
	for _, m := range moments {
		unmount := mountImage(t, m.image, at)
		o := stormOptions()
		storetest.Of(o).System.FS = otherBoot{vfs.OS()}
		o.Clock = func() time.Time { return time.Now().Add(time.Minute) } // no other process's heartbeat is recent
		ctx := context.Background()
		st, err := varve.Open(ctx, s.dir, o)
		if err != nil {
			t.Fatalf("%s: %v", m.image, err)
		}
		r := st.Admin().OpenReport()
		if r.Damage != nil || r.Healed != nil {
			t.Errorf("%s: %+v", m.image, r)
		}
		if r.TornTail != nil {
			torn++
		}
		worst = max(worst, r.Replayed)
		s.told.CheckSince(m.since, func(key string) string {
			return storetest.OneState(key, statesIn(st))
		})
		got, err := st.Get(ctx, stormCounter)
		var n int
		if _, serr := fmt.Sscanf(got.Content, "%d", &n); err != nil || serr != nil || n < m.counted || n > c.Begun {
			t.Errorf("%s: the counter is at %q, %v: %d were acknowledged", m.image, got.Content, err, m.counted)
		}
		if err := st.Flush(ctx); err != nil {
			t.Errorf("%s: flush: %v", m.image, err)
		}
		s.told.CheckSince(m.since, func(key string) string { return storetest.OneState(key, storetest.StatesBelow(s.dir)) })
		for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{}) {
			if err != nil || f.Severity != varve.SeverityInfo {
				t.Errorf("%s: verify: %+v, %v", m.image, f, err)
			}
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
		notes, _ := filepath.Glob(filepath.Join(s.dir, "quarantine", "*.note.json"))
		aside += len(notes)
		for _, note := range notes {
			text, _ := os.ReadFile(note)
			b, _ := os.ReadFile(strings.TrimSuffix(note, ".note.json"))
			t.Logf("%s: set aside: %s\n%.400q", m.image, text, b)
		}
		unmount()
		if err := os.Remove(m.image); err != nil {
			t.Error(err)
		}
	}
	for _, w := range s.told.Wrong {
		t.Error(w)
	}
	t.Logf("%s: %d moments of a load of %d answered operations, counted to %d; at most %d entries replayed, %d torn "+
		"tails, %d files set aside",
		fs, len(moments), s.told.Ops, c.Acked, worst, torn, aside)
}

// moments copies the disk while processes work.
func (s *storm) moments(disk string) (all []diskCopy) {
	lives := []*life{s.start(0), s.start(1), s.start(2)}
	for n := range *imageCopies {
		time.Sleep(time.Duration(200+s.rng.IntN(1500)) * time.Millisecond)
		m := diskCopy{image: fmt.Sprintf("%s.%d", disk, n), since: s.told.Settled(), counted: s.told.Counted()}
		if err := reflink(disk, m.image); err != nil {
			s.t.Fatalf("copying %s in one step: %v", disk, err)
		}
		all = append(all, m)
	}
	for _, l := range lives {
		s.end(l, false)
	}
	return all
}

func reflink(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	return errors.Join(unix.IoctlFileClone(int(out.Fd()), int(in.Fd())), out.Close())
}

func makeImage(t *testing.T, name, fs string, size int64) string {
	t.Helper()
	f, err := os.Create(name)
	if err == nil {
		err = errors.Join(f.Truncate(size), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	command(t, "mkfs."+fs, "-q", name)
	return name
}

func mountImage(t *testing.T, image, at string) (unmount func()) {
	t.Helper()
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	command(t, "mount", "-o", "loop", image, at)
	done := false
	unmount = func() {
		if !done {
			command(t, "umount", at)
			done = true
		}
	}
	t.Cleanup(unmount)
	return unmount
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}
