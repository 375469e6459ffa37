package undone

import (
	"context"
	"errors"
)

func undoing(ctx context.Context, arg, dir string) error { return errors.ErrUnsupported }
func writing(ctx context.Context, arg, dir string) error { return errors.ErrUnsupported }
