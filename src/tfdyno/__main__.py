"""``python -m tfdyno``."""

import sys

from tfdyno.cli.main import main

sys.exit(main())
