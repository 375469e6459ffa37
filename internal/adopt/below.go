package adopt

import "context"

// belowMost is the number of files that LookBelow checks together. The versions that it adopts from them share a
// commit, and one round of the flusher writes their files.
const belowMost = 1024

// LookBelow does what Look does, for the files of a folder that are new or were edited and whose paths begin with a
// prefix. It returns the number of versions that this process adopted during the call.
func (f *Files) LookBelow(ctx context.Context, folder, prefix string) (adopted int, err error) {
	before := f.ed.engine.Health().Adoptions()
	var names []string
	for name, err := range f.Suspects(ctx, folder) {
		if err != nil {
			return 0, err
		}
		if name != "" && len(name) >= len(prefix) && name[:len(prefix)] == prefix {
			names = append(names, name)
		}
	}
	for len(names) > 0 && err == nil {
		n := min(len(names), belowMost)
		_, err = f.Look(ctx, folder, names[:n])
		names = names[n:]
	}
	return f.ed.engine.Health().Adoptions() - before, err
}
