package s3

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/varve-db/varve/errs"
	"github.com/varve-db/varve/remote"
)

// Environment returns the credentials that the environment has. It uses VARVE_S3_ACCESS_KEY_ID,
// VARVE_S3_SECRET_ACCESS_KEY and VARVE_S3_SESSION_TOKEN; if these are not set, the same variables with AWS_ in the
// place of VARVE_S3_; and if these are not set either, the profile AWS_PROFILE (default) of
// AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials). A credentials file that other users may read is refused.
func Environment() (*credentials.Credentials, error) {
	for _, prefix := range []string{"VARVE_S3_", "AWS_"} {
		id, secret := os.Getenv(prefix+"ACCESS_KEY_ID"), os.Getenv(prefix+"SECRET_ACCESS_KEY")
		switch {
		case id != "" && secret != "":
			return credentials.NewStaticV4(id, secret, os.Getenv(prefix+"SESSION_TOKEN")), nil
		case id != "" || secret != "":
			return nil, fmt.Errorf("%w: only one of %sACCESS_KEY_ID and %sSECRET_ACCESS_KEY is set -> set both",
				errs.ErrInvalid, prefix, prefix)
		}
	}
	file := os.Getenv("AWS_SHARED_CREDENTIALS_FILE")
	if file == "" {
		if home, err := os.UserHomeDir(); err == nil {
			file = filepath.Join(home, ".aws", "credentials")
		}
	}
	st, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("%w: no credentials for the object store -> set AWS_ACCESS_KEY_ID and "+
			"AWS_SECRET_ACCESS_KEY, or VARVE_S3_ACCESS_KEY_ID and VARVE_S3_SECRET_ACCESS_KEY", errs.ErrPermission)
	}
	if err := remote.CheckMode(file, st.Mode()); err != nil {
		return nil, err
	}
	c := credentials.NewFileAWSCredentials(file, os.Getenv("AWS_PROFILE"))
	if v, err := c.GetWithContext(nil); err != nil || v.AccessKeyID == "" {
		return nil, fmt.Errorf("%w: %s has no credentials of the profile %q", errs.ErrPermission, file,
			profile())
	}
	return c, nil
}

func profile() string {
	if p := os.Getenv("AWS_PROFILE"); p != "" {
		return p
	}
	return "default"
}

func environmentRegion() string {
	for _, name := range []string{"VARVE_S3_REGION", "AWS_REGION", "AWS_DEFAULT_REGION"} {
		if v := os.Getenv(name); v != "" {
			return v
		}
	}
	return ""
}
