package fuzz

import (
	"path"
	"runtime"
	"strconv"
	"strings"

	"github.com/varve-db/varve/internal/vfs/sim"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// sites caches what program counters stand for.
type sites map[uintptr]string

// place returns where an operation was called, outside the vfs packages. Op.Site would return this
// package, because its hooks are in between.
func (s sites) place(op *wrap.Op) sim.Place {
	below := false // we have passed package wrap
	// It is usually a few frames up, and this is called for each operation.
	var pcs [40]uintptr
	for skip, most := 0, 10; ; skip, most = skip+most, len(pcs) {
		n := runtime.Callers(2+skip, pcs[:most])
		if at := s.engine(pcs[:n], &below); at != "" {
			return sim.Place{Site: at, Kind: op.Kind}
		}
		if n < most || skip > 0 {
			return sim.Place{Site: "?", Kind: op.Kind}
		}
	}
}

// engine returns the first of the frames below package wrap that is not in vfs.
func (s sites) engine(pcs []uintptr, below *bool) string {
	for _, pc := range pcs {
		at, ok := s[pc]
		if !ok {
			f, _ := runtime.CallersFrames([]uintptr{pc}).Next()
			dir, file := path.Split(f.File)
			switch {
			case strings.Contains(f.Function, "/internal/vfs"):
				at = "vfs"
			case strings.HasPrefix(f.Function, "runtime."), strings.HasPrefix(f.Function, "io."):
			default:
				at = path.Base(dir) + "/" + file + ":" + strconv.Itoa(f.Line)
			}
			s[pc] = at
		}
		switch {
		case at == "vfs":
			*below = true
		case *below && at != "":
			return at
		}
	}
	return ""
}
