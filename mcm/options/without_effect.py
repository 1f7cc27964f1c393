"""Flags of the Go original that mean nothing here: accepted, so that its command lines start."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, final

_MEDIA_TYPE: Final = re.compile(r"[\w.+-]+/[\w.+-]+(\s*;\s*[\w.+-]+=\S+)*", re.ASCII)
_SEVERITY: Final = re.compile(r"[0-3]|INFO|WARNING|ERROR|FATAL", re.IGNORECASE)
_SOURCE_LINE: Final = re.compile(r"[^:\s]*:[0-9]+", re.ASCII)


@final
@dataclass(frozen=True, slots=True)
class WithoutEffect:
    """Defaults are those of the original; what it refuses is refused here, too."""

    cloud_provider: str = ""
    controller_start_interval: timedelta = timedelta()
    kube_api_content_type: str = "application/vnd.kubernetes.protobuf"
    add_dir_header: bool = False
    alsologtostderr: bool = False
    log_backtrace_at: str = ":0"
    log_dir: str = ""
    log_file: str = ""
    log_file_max_size: int = 1800
    log_flush_frequency: timedelta = timedelta(seconds=5)
    logtostderr: bool = True
    one_output: bool = False
    skip_headers: bool = False
    skip_log_headers: bool = False
    stderrthreshold: str = "2"

    def validate(self) -> list[str]:
        problems = []
        if self.controller_start_interval < timedelta():
            problems.append("--controller-start-interval: must not be negative")
        if self.kube_api_content_type and not _MEDIA_TYPE.fullmatch(self.kube_api_content_type):
            problems.append(
                f"--kube-api-content-type: {self.kube_api_content_type!r} is no media type "
                "(such as application/json)"
            )
        if self.log_file_max_size < 0:
            problems.append("--log-file-max-size: must not be negative")
        if not _SEVERITY.fullmatch(self.stderrthreshold):
            problems.append(
                f"--stderrthreshold: {self.stderrthreshold!r} is no severity "
                "(INFO, WARNING, ERROR, FATAL or 0 to 3)"
            )
        if self.log_backtrace_at and not _SOURCE_LINE.fullmatch(self.log_backtrace_at):
            problems.append(
                f"--log-backtrace-at: {self.log_backtrace_at!r} is no place (FILE:LINE)"
            )
        return problems
