package storm

import (
	"context"
	"errors"
)

func fewFiles(context.Context, string, string) error { return errors.ErrUnsupported }
