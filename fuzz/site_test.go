package fuzz

import (
	"path"
	"runtime"
	"strconv"
	"strings"

	"github.com/varve-db/varve/internal/vfs/sim"
	"github.com/varve-db/varve/internal/vfs/wrap"
)

// sites remembers what program counters stand for.
type sites map[uintptr]string

// place is where an operation was called from, outside the vfs packages. Op.Site
// would name this package: its hooks stand between.
func (s sites) place(op *wrap.Op) sim.Place {
	below := false // we have passed package wrap
	// It is a few frames up mostly, and this is asked at each operation.
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

// engine is the first of the frames below package wrap that is none of vfs.
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
