package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/vector/embed"
)

// Failure is an error as the user sees it.
type Failure struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Path    string `json:"path,omitempty"`
	Fix     string `json:"fix,omitempty"`

	Conflict *conflict `json:"conflict,omitempty"`

	Committed int64 `json:"committed,omitempty"` // number of durable commits of the command before the failure

	Code int `json:"-"`
}

// conflict describes a failed condition on a version: the expected version, and the version that was found, which is 0
// if the document does not exist.
type conflict struct {
	ID       string `json:"id"`
	Expected uint64 `json:"expected"`
	Found    uint64 `json:"found"`
}

// usageError is an invalid command line.
type usageError struct {
	command string // name of the command whose help explains the usage
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func Usagef(command, format string, args ...any) error {
	return Usage(command, fmt.Errorf(format, args...))
}

// Usage returns an error for an invalid command line; command is the command whose help explains
// it.
func Usage(command string, err error) error { return &usageError{command, err} }

// WithFix adds a remedy to an error. This remedy replaces the remedy for the error's kind.
func WithFix(err error, fix string) error { return &fixed{err, fix} }

// fixed is an error with a remedy that replaces the remedy for the error's kind.
type fixed struct {
	err error
	fix string
}

func (e *fixed) Error() string { return e.err.Error() }
func (e *fixed) Unwrap() error { return e.err }

// classes maps errors to exit codes, kinds and remedies. The first entry that matches is used; the order
// matters, since damage also matches ErrReadOnly if it made the store read-only, and ErrInvalid if a decoder
// found it.
var classes = []struct {
	is   func(error) bool
	code int
	kind string
	fix  string
}{
	{errorAs[*usageError], codeUsage, "usage", "memctl help shows the commands"},
	{errorAs[*unready], CodeDamage, "not ready", "memctl flush rebuilds index and log from the files"},
	{errorIs(varve.ErrMoved), CodeNoStore, "moved", "use the store at its new place"},
	{errorIs(varve.ErrReplaced), CodeNoStore, "replaced", againOpens},
	{errorIs(varve.ErrNewerFormat), CodeNewer, "newer format", "install the newest memctl"},
	{errorIsBoth(varve.ErrOutcomeUnknown, context.Canceled), CodeInterrupted, "interrupted",
		"check whether the memory was stored: memctl get ID"},
	{errorIs(varve.ErrOutcomeUnknown), CodeInternal, "outcome unknown",
		"check whether the memory was stored: memctl get ID"},
	{errorIsBoth(varve.ErrLocked, context.Canceled), CodeInterrupted, "interrupted", again},
	{errorIs(varve.ErrLocked), CodeLocked, "locked", "wait for that process or end it; --wait sets how long memctl " +
		"waits"},
	{errorAs[*vfs.NotFolderError], CodeDamage, "not a folder",
		"memctl repair --apply moves the link (or file) out of the way, but not the target of the link"},
	{errorIs(varve.ErrCorrupt), CodeLost, "unreadable", "memctl verify shows what is damaged, and the remedy"},
	{errorIs(varve.ErrConflict), CodeConflict, "conflict", "read the current version (memctl get ID)" + andRetry},
	{errorAs[*EndingError], CodeRefused, "ambiguous", "give more of the id, or the whole id: memctl list --output id"},
	{errorAs[*varve.NoVersionError], CodeNotFound, "not found", "memctl history ID lists the versions that are kept"},
	{errorIs(varve.ErrNotFound), CodeNotFound, "not found", "memctl list shows the memories of the store"},
	{errorIs(varve.ErrCopyBehind), CodeRefused, "no longer kept", "begin the copy again with a full copy"},
	{errorIs(varve.ErrTruncated), CodeRefused, "no longer kept",
		"log and archive do not reach back that far; perhaps a backup does: memctl restore BACKUP DIR --at TIME"},
	{errorIs(varve.ErrNoStore), CodeNoStore, "no store",
		"create one with memctl init DIR, or name one with --store DIR"},
	{vfs.IsDiskFull, CodeDiskFull, "disk full", "free disk space"},
	{vfs.IsPermission, CodePermission, "permission", "change the owner or the mode, or run memctl as the owner"},
	{errorAs[*varve.LinkedError], CodePermission, "read-only",
		"copy the store without hard links (cp -a) and use the copy; this store can still be read"},
	{errorIs(varve.ErrReadOnly), CodePermission, "read-only", "memctl status says why"},
	{errorIs(varve.ErrTooLarge), CodeRefused, "too large", "memctl config shows the limits, which are in config.json"},
	{errorIs(varve.ErrBatchTooLarge), CodeRefused, "too large",
		"put fewer memories at once, or use memctl import --from jsonl"},
	{errorAs[*varve.InflatedError], CodeRefused, "limit",
		"if you trust this store, write these memories to files with memctl flush --inflate; otherwise delete them " +
			"(memctl list --sort -size)"},
	{errorIs(varve.ErrLimit), CodeRefused, "limit", "memctl config shows the limits, which are in config.json"},
	{vfs.IsStarved, CodeRefused, "limit", starved},
	{errorIs(varve.ErrTooManyFiles), CodeRefused, "limit", starved},
	{errorAs[*varve.PurgedError], CodeRefused, "purged",
		"do not store this text, or store it nevertheless with memctl put --force-purged"},
	{errorIs(varve.ErrRedacted), CodeRefused, "redacted", "memctl history ID lists the other versions"},
	{errorIs(varve.ErrSession), CodeRefused, "refused", ""},
	{errorAs[*keptError], CodeRefused, "refused", ""},
	{errorIs(vfs.ErrNotFolder), CodeRefused, "wrong kind",
		"memctl verify names the file or folder that is in the wrong place; memctl repair --apply moves it to " +
			"quarantine/"},
	{errorIs(vfs.ErrNotRegular), CodeRefused, "wrong kind",
		"memctl verify names the file or folder that is in the wrong place; memctl repair --apply moves it to " +
			"quarantine/"},
	{errorIs(syscall.ENXIO), CodeRefused, "not a file",
		"give the path of a file; a socket, or a device without a driver, " + "cannot be read"},
	{errorIs(syscall.ENOTDIR), CodeRefused, "wrong kind",
		"a file is at the path of a folder: in a store, memctl verify names the file; elsewhere, check the path"},
	{errorIs(varve.ErrModel), CodeRefused, "another model", anotherModel},
	{errorIs(varve.ErrDimension), CodeRefused, "invalid",
		"use the model that made the store's embeddings (memctl status)" + nothingWritten},
	{errorIs(varve.ErrInvalid), CodeRefused, "invalid", "correct the input" + nothingWritten},
	{errorIs(fs.ErrNotExist), CodeRefused, "no such file", "check the name"},
	{errorIs(syscall.EISDIR), CodeRefused, "not a file", "give the path of a file; only memctl import reads folders"},
	{errorAs[*embed.Error], CodeInternal, "embedding service",
		"check VARVE_EMBED_URL, VARVE_EMBED_MODEL and VARVE_EMBED_KEY; memctl search --mode words does not need the service"},
	{errorIs(context.Canceled), CodeInterrupted, "interrupted", again},
	{errorIs(syscall.EIO), CodeInternal, "internal",
		"the disk, or the connection to it, fails: see the log of the system (dmesg), then run memctl verify"},
	{errorIs(syscall.EBUSY), CodeInternal, "internal",
		"the file is in use by the system (a mount point, for example) or by another program: end that use" +
			thenAgain},
}

const (
	anotherModel = "use the store's model (VARVE_EMBED_MODEL), search by words (memctl search --mode words), or switch " +
		"the store to another model with memctl reindex"
	starvedFix = "raise the limit of open files or of memory (ulimit -n shows and sets the number of files)"
	starved    = starvedFix + thenAgain
)

func errorIs(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func errorIsBoth(a, b error) func(error) bool {
	return func(err error) bool { return errors.Is(err, a) && errors.Is(err, b) }
}

func errorAs[T error](err error) bool {
	var t T
	return errors.As(err, &t)
}

// Classify returns the failure for an error.
func Classify(err error) *Failure {
	f := &Failure{Kind: "internal", Message: err.Error(), Path: pathOf(err), Code: CodeInternal}
	for _, c := range classes {
		if c.is(err) {
			f.Code, f.Kind, f.Fix = c.code, c.kind, c.fix
			break
		}
	}
	var u *usageError
	if errors.As(err, &u) && u.command != "" {
		f.Fix = u.command + " --help shows how it is used"
	}
	var refused *varve.PermissionError
	if errors.As(err, &refused) && refused.Fix != "" {
		f.Fix = refused.Fix
	}
	if none := (*vfs.NoInodeError)(nil); errors.As(err, &none) {
		f.Fix = "remove files from that file system, or use one with more inodes (df -i)"
	}
	var full *varve.DiskFullError
	if errors.As(err, &full) {
		f.Fix = "free space on the disk of " + full.Path
		if full.Inodes {
			f.Fix = "remove files from the file system of " + full.Path + ", or use one with more inodes (df -i)"
		} else if full.Need > full.Free && full.Free >= 0 {
			f.Fix += fmt.Sprintf(", about %s", Size(full.Need-full.Free))
		}
		if IsStore(full.Path) { // and not the folder of a backup or another output
			f.Fix += "; deleting still works: memctl rm ID"
		}
	} else if vfs.IsDiskFull(err) && f.Path != "" {
		f.Fix = "free space on the disk of " + f.Path
	}
	var gone *varve.MovedError
	if errors.As(err, &gone) {
		f.Fix = "use the store at its new place: memctl --store " + ShellQuote(gone.To) + " status"
	}
	var changed *varve.ConflictError
	if errors.As(err, &changed) {
		f.Conflict = &conflict{changed.ID, changed.Expected, changed.Found}
	}
	var emptied *varve.EmptiedError
	if errors.As(err, &emptied) {
		f.Fix = "switch to the branch that has the store, or restore what the log has: memctl --store " +
			ShellQuote(emptied.Path) + " repair --apply"
	}
	var clone *varve.ClonedError
	if errors.As(err, &clone) {
		f.Fix = "memctl --store " + ShellQuote(clone.Dir) + " remote take; or for an independent store: memctl clone --fork"
	}
	var begun *varve.UnfinishedError
	if errors.As(err, &begun) {
		f.Fix = "finish it: memctl --store " + ShellQuote(begun.From) + " migrate --to " + ShellQuote(begun.To) + " --switch"
	}
	f.remedies(err)
	if f.Code == CodeInterrupted {
		f.Message = interrupted(f.Message)
	}
	var better *fixed
	if errors.As(err, &better) {
		f.Fix = better.fix
	}
	var after *committedError
	if errors.As(err, &after) {
		f.adjustForCommits(after)
	}
	return f
}

// pathOf returns the path of the file to which an error refers. It returns "" if the error names no file.
func pathOf(err error) string {
	var (
		damaged *varve.CorruptionError
		locked  *varve.LockError
		moved   *varve.MovedError
		refused *varve.PermissionError
		full    *varve.DiskFullError
		newer   *varve.NewerError
		lacking *varve.FeatureError
		path    *fs.PathError
		link    *os.LinkError
	)
	switch {
	case errors.As(err, &damaged):
		return damaged.Path
	case errors.As(err, &locked):
		return locked.Path
	case errors.As(err, &moved):
		return moved.From
	case errors.As(err, &refused):
		return refused.Path
	case errors.As(err, &full):
		return full.Path
	case errors.As(err, &newer):
		return newer.Path
	case errors.As(err, &lacking):
		return lacking.Path
	case errors.As(err, &path):
		return path.Path
	case errors.As(err, &link):
		return link.New
	}
	return ""
}

// keptError means that a command did not delete something that the user wanted to delete.
type keptError struct{ error }

// NotDeleted returns an error for an item that was not deleted although the user requested the deletion. cause is
// the reason.
func NotDeleted(cause error) error { return &keptError{cause} }
