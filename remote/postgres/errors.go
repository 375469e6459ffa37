package postgres

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
)

var (
	errForm       = errors.New("no program writes such a row")
	errDigest     = errors.New("the row does not match its digest")
	errBytes      = errors.New("the bytes of the piece do not match their SHA-256")
	errMissing    = errors.New("the row is missing")
	errUnreadable = errors.New("the server cannot read what it has stored")
	errReplica    = errors.New("the server is a replica")
	errString     = errors.New("the piece does not begin where the one before it ends")
)

// damaged returns a *errs.CorruptionError for a part of the remote, such as a row. part is the name of the damaged
// part.
func (r *Remote) damaged(part string, err error) error {
	return &errs.CorruptionError{Path: r.Place() + " (" + part + ")", Offset: -1, Err: err}
}

// isDamage reports whether err means that the database server could not read its own stored data.
func isDamage(err error) bool { return errors.Is(err, errUnreadable) }

// kinds maps codes and classes of errors of the database server to the sentinel error that such an error matches, and
// to a remedy.
var kinds = map[string]struct {
	kind   error
	remedy string
}{
	"28":    {errs.ErrPermission, "check the user and PGPASSWORD or ~/.pgpass"},
	"28P01": {errs.ErrPermission, "check the user and PGPASSWORD or ~/.pgpass"},
	"42501": {errs.ErrPermission, "grant the user what the message names"},
	"3D000": {remote.ErrNoRemote, "create the database, or correct its name"},
	"3F000": {remote.ErrNoRemote, "check database and schema"},
	"42P01": {remote.ErrNoRemote, "check database and schema"},
	"25006": {remote.ErrUnsuitable, "name the primary, which accepts writes"},
	"0A000": {remote.ErrUnsuitable, "name the primary, which accepts writes"},
	"53100": {errs.ErrDiskFull, "give the database more space"},
}

// wrapped returns an error of the driver with the operation and the place in front. If kinds has the code or the class
// of the server's error, the result matches the sentinel error in kinds. wrapped does not change an error that already
// has the place.
func (r *Remote) wrapped(doing string, err error) error {
	var moved *remote.MovedError
	var other *remote.OtherStoreError
	var truncated *remote.TruncatedError
	if errors.Is(err, errs.ErrCorrupt) || errors.Is(err, errs.ErrNewerFormat) || errors.Is(err, remote.ErrNoRemote) ||
		errors.Is(err, errs.ErrNotFound) || errors.Is(err, remote.ErrUnsuitable) || errors.As(err, &moved) ||
		errors.As(err, &other) || errors.As(err, &truncated) || errors.Is(err, errs.ErrInvalid) {
		return err // has the place
	}
	var answer *pgconn.PgError
	if errors.As(err, &answer) && len(answer.Code) == 5 {
		if answer.Code[:2] == "XX" {
			return r.damaged("the server's files", fmt.Errorf("%w: %s", errUnreadable, answer.Message))
		}
		k, ok := kinds[answer.Code]
		if !ok {
			k, ok = kinds[answer.Code[:2]]
		}
		if ok {
			return fmt.Errorf("%s %s: %w: %s -> %s", doing, r.Place(), k.kind, answer.Message, k.remedy)
		}
		return fmt.Errorf("%s %s: %s (%s): %w", doing, r.Place(), answer.Message, answer.Code, err)
	}
	if errors.Is(err, errReplica) {
		return fmt.Errorf("%s %s: %w: %w -> name the primary, which accepts writes", doing, r.Place(), remote.ErrUnsuitable,
			errReplica)
	}
	var failed *pgconn.ConnectError
	if errors.As(err, &failed) {
		return fmt.Errorf("%s %s: %w", doing, r.Place(), failed.Unwrap())
	}
	return fmt.Errorf("%s %s: %w", doing, r.Place(), err)
}
