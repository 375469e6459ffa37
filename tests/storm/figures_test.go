package storm

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/varve-db/varve/internal/storetest"
)

// stormFigures are the resources that a storm uses at one moment.
type stormFigures struct {
	handles, memory int64 // the most of one process; files, and resident KiB
	disk            int64 // KiB of the store, as allocated
	files           int64
}

func (f *stormFigures) add(g stormFigures) {
	f.handles, f.memory, f.disk, f.files = max(f.handles, g.handles), max(f.memory, g.memory), max(f.disk, g.disk), max(f.files, g.files)
}

func (f stormFigures) String() string {
	return fmt.Sprintf("%d handles and %d KiB of memory of one process, %d KiB of disk in %d files", f.handles, f.memory, f.disk, f.files)
}

// figuresOf returns the figures of processes, where the system reports them, and of the store.
func figuresOf(dir string, pids ...int) (f stormFigures) {
	for _, pid := range pids {
		fds, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		f.handles = max(f.handles, int64(len(fds)))
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		var size, resident int64
		if _, err := fmt.Sscan(string(b), &size, &resident); err == nil {
			f.memory = max(f.memory, resident*int64(os.Getpagesize())/1024)
		}
	}
	if dir == "" {
		return f
	}
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // it goes while we look
		}
		if info, err := d.Info(); err == nil {
			f.disk += storetest.Allocated(info) / 1024
			f.files++
		}
		return nil
	})
	return f
}

// look records the figures, and prints them from time to time.
func (s *storm) look(all []*life) {
	var pids []int
	for _, l := range all {
		if l != nil {
			pids = append(pids, l.cmd.Process.Pid)
		}
	}
	f := figuresOf(s.dir, pids...)
	if s.elder != nil {
		f := figuresOf("", s.elder.cmd.Process.Pid)
		if s.old.add(f); s.young.handles == 0 {
			s.young = f
		}
	}
	s.most.add(f)
	if time.Since(s.lookedAt) < 20*time.Second {
		return
	}
	s.lookedAt = time.Now()
	s.t.Logf("%s: %s", time.Since(s.began).Round(time.Second), f)
}
