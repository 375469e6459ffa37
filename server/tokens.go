package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/internal/vfs"
)

// ErrNoToken means that the token file has no token with the given name.
var ErrNoToken = errors.New("the token file has no token with this name")

// ErrTokenExists means that the token file already has a token with the given name or with the same secret.
var ErrTokenExists = errors.New("the token file already has this token")

// mostFile is the maximum size of a token file in bytes.
const mostFile = 1 << 20

// lockEvery is the interval between attempts to lock the token file while another process holds the lock.
const lockEvery = 20 * time.Millisecond

// Tokens are the access tokens that a server accepts: the tokens of a token file and a list of fixed tokens. The file
// is read again when it has changed. Tokens is safe for concurrent use.
type Tokens struct {
	path  string
	fixed []Token

	mu    sync.Mutex
	known fileState
	list  map[Sum]*Token
	err   error // reason why the file cannot be used
}

// fileState has the properties of a file that show whether it was changed.
type fileState struct {
	exists bool
	size   int64
	mtime  time.Time
	file   os.FileInfo
}

func (s fileState) equal(o fileState) bool {
	return s.exists == o.exists && (!s.exists || s.size == o.size && s.mtime.Equal(o.mtime) && os.SameFile(s.file, o.file))
}

// OpenTokens returns the tokens of the token file at path together with the fixed tokens. If path is "", there is no
// token file. A file that does not exist yet counts as a file without tokens. If a token of the file has the same Sum
// as a fixed token, the fixed token is used. If the file cannot be read, OpenTokens returns the error and the fixed
// tokens; if a fixed token is invalid, it returns only the error.
func OpenTokens(path string, fixed ...Token) (*Tokens, error) {
	for i := range fixed {
		if err := fixed[i].Validate(); err != nil {
			return nil, err
		}
	}
	t := &Tokens{path: path, fixed: slices.Clone(fixed)}
	_, err := t.all()
	return t, err
}

// Len returns the number of tokens that are currently valid.
func (t *Tokens) Len() int {
	all, _ := t.all()
	return len(all)
}

// Find returns the token with the given Sum, or nil if no valid token has this Sum. If the token file cannot be read,
// only the fixed tokens are found; for any other Sum, Find returns the error of reading the file.
func (t *Tokens) Find(sum Sum) (*Token, error) {
	all, err := t.all()
	if k := all[sum]; k != nil {
		return k, nil
	}
	return nil, err
}

// all returns all valid tokens by their Sum. It reads the token file again if the file has changed. If the file cannot
// be read, all returns the error and only the fixed tokens.
func (t *Tokens) all() (map[Sum]*Token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, err := stateOf(t.path)
	if err == nil && t.list != nil && t.err == nil && now.equal(t.known) {
		return t.list, nil
	}
	var list []Token
	if err == nil && now.exists {
		list, err = ReadTokens(t.path)
	}
	t.known, t.err, t.list = now, err, map[Sum]*Token{}
	for _, k := range append(list, t.fixed...) {
		t.list[k.Sum] = &k
	}
	return t.list, err
}

func stateOf(path string) (fileState, error) {
	if path == "" {
		return fileState{}, nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fileState{}, nil
	}
	if err != nil {
		return fileState{}, err
	}
	return fileState{true, info.Size(), info.ModTime(), info}, nil
}

// ReadTokens reads the tokens in a token file. It returns an error if another user owns the file or has permission to
// write it, because that user could add a token. A file that does not exist counts as a file without tokens.
func ReadTokens(path string) ([]Token, error) {
	fsys := vfs.OS()
	info, err := fsys.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !vfs.SelfOn(fsys, os.Getenv).Trusted(&info) {
		return nil, fmt.Errorf("%w: another user owns %s and could add tokens to it: copy the file, or use another one",
			varve.ErrPermission, path)
	}
	if runtime.GOOS != "windows" && info.Mode.Perm()&0o022 != 0 { // on Windows, Mode does not show who may write
		return nil,
			fmt.Errorf("%w: other users have permission to write %s and could add tokens to it: run chmod 600 %s",
				varve.ErrPermission, path, path)
	}
	b, err := vfs.ReadFile(fsys, path, mostFile)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	list, err := parseTokens(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

// ChangeTokens reads a token file, calls change with its tokens, and durably writes the list that change returns. If
// change returns an error, nothing is written. A lock makes concurrent calls, in this process and in others, run one
// after the other. ChangeTokens creates the file and its folder if they do not exist.
func ChangeTokens(ctx context.Context, path string, change func(list []Token) ([]Token, error)) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockEvery); err != nil {
		return fmt.Errorf("locking %s: %w", lock.Path(), err)
	}
	defer func() { _ = lock.Close() }() // closing the file releases the lock
	list, err := ReadTokens(path)
	if err != nil {
		return err
	}
	if list, err = change(list); err != nil {
		return err
	}
	if len(list) > MostTokens {
		return fmt.Errorf("%w: a token file has at most %d tokens: remove one first", varve.ErrTooLarge, MostTokens)
	}
	if err := vfs.WriteDurable(vfs.OS(), path+".new", path, formatTokens(list), 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// AddToken adds a token to a token file. The error matches ErrTokenExists if the file already has a token with the same
// name or the same Sum.
func AddToken(ctx context.Context, path string, t Token) error {
	if err := t.Validate(); err != nil {
		return err
	}
	return ChangeTokens(ctx, path, func(list []Token) ([]Token, error) {
		for _, k := range list {
			switch {
			case k.Name == t.Name:
				return nil, fmt.Errorf("%w: %s", ErrTokenExists, t.Name)
			case k.Sum == t.Sum:
				return nil, fmt.Errorf("%w: its name in the file is %s", ErrTokenExists, k.Name)
			}
		}
		return append(list, t), nil
	})
}

// RemoveToken removes the token with the given name from a token file. The error matches ErrNoToken if the file has no
// token with this name.
func RemoveToken(ctx context.Context, path, name string) error {
	return ChangeTokens(ctx, path, func(list []Token) ([]Token, error) {
		rest := slices.DeleteFunc(slices.Clone(list), func(k Token) bool { return k.Name == name })
		if len(rest) == len(list) {
			return nil, fmt.Errorf("%w: %s", ErrNoToken, name)
		}
		return rest, nil
	})
}
