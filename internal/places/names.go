package places

import (
	"path"
	"regexp"
	"strings"

	"github.com/varve-db/varve/index"
	"github.com/varve-db/varve/segment"
	"github.com/varve-db/varve/vector"
	"github.com/varve-db/varve/wal"
)

// Patterns of names that the store gives to its files.
var (
	tokenName  = regexp.MustCompile(`^[0-9]+-[0-9a-f]+-[0-9a-f]{12}$|^[0-9a-f]{16}$`)
	workerName = regexp.MustCompile(`^[0-9]+(-[0-9]+)?$`)
	copyName   = regexp.MustCompile(`^[0-9]{8,}\.zst(\.(new|purge|away))?(\.[0-9]+-[0-9]+\.new)?$`)
	backupName = regexp.MustCompile(`^memory_index\.[0-9]+\.json(\.new)?$`)
	viewFolder = regexp.MustCompile(`^[a-z]+$`)
	viewFile   = regexp.MustCompile(`^[0-9a-f]{16}\.(seg|[0-9a-f]{16}\.st)$|^manifest\.json$|^\.gitignore$`)
	vectorName = regexp.MustCompile(`^(memory_vectors|mapping|reembed)[a-z._]*$`)
	// the ending of the name of a file that is not complete yet
	makingName = regexp.MustCompile(`\.(([0-9a-f]{12}|[0-9]+-[0-9]+)\.)?new$`)
)

// IsToken reports whether a name in tmp/ is the token of a process, with which the names of the process's files begin:
// see engine.NewToken.
func IsToken(name string) bool { return tokenName.MatchString(name) }

func isLogFile(name string) bool {
	_, ok := segment.ParseName(name)
	return ok || InLog(name) || OfTheMachine("wal/"+name) || "wal/"+name == SecondNote
}

// IsName reports whether a store itself uses a path for a file, or, if isFolder is true, for a folder. rel is the path
// relative to the store's folder, with slashes. IsName returns false for the files in quarantine/, and for backups
// that a user put into backups/.
func IsName(rel string, isFolder bool) bool {
	dir, base := path.Split(rel)
	dir = path.Clean(dir)
	if folder, below, in := strings.Cut(rel, "/"); in {
		if own := owner(folder); own != nil {
			return own(makingName.ReplaceAllString(below, ""), isFolder)
		}
	}
	if isFolder {
		switch {
		case rel == "." || isPlace(rel, folder):
			return true
		case dir == Views:
			return viewFolder.MatchString(base)
		case dir == "tmp":
			return tokenName.MatchString(base)
		}
		return path.Dir(dir) == "tmp" && tokenName.MatchString(path.Base(dir)) && workerName.MatchString(base)
	}
	made := makingName.ReplaceAllString(base, "")
	switch top, _, _ := strings.Cut(rel, "/"); {
	case dir == ".":
		return IsTopFile(made) || made == MovedName || made == MigrationName || made == "migrate.lock"
	case dir == "wal":
		return isLogFile(base) || wal.IsMaking(base)
	case dir == "wal/archive":
		return copyName.MatchString(base)
	case dir == index.BackupsDir:
		return backupName.MatchString(base)
	case dir == vector.Folder:
		return vectorName.MatchString(base)
	case dir == Views:
		return made == ".gitignore"
	case path.Dir(dir) == Views:
		return viewFile.MatchString(made)
	case dir == "tmp":
		return IsIndexTemp(base) || base == "checkpoint.new"
	case top == "tmp":
		return tokenName.MatchString(path.Base(path.Dir(dir))) && workerName.MatchString(base)
	}
	return false
}

// IsIndexTemp reports whether a name in tmp/ is that of an incomplete file. The name of such a file has three parts,
// with dots between them. The first part tells which file it will be: index, expiry, aged, writers, purges or
// purged-texts. The second part is the token of the process that writes the file. The third part is any suffix, and
// may be missing. Instead of the token and the suffix, the name may have "new" or "repair".
func IsIndexTemp(name string) bool {
	what, rest, _ := strings.Cut(name, ".")
	switch what {
	case "index", "expiry", "aged", "writers", "purges", "purged-texts":
		token, _, _ := strings.Cut(rest, ".")
		return IsToken(token) || rest == "new" || rest == "repair"
	}
	return false
}
