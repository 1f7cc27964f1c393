//go:build tools

// Package helm pins what the build script compiles; nothing here is run.
package helm

import _ "helm.sh/helm/v3/cmd/helm"
