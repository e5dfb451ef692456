"""The child that tries the installed TensorFlow."""

from __future__ import annotations

from tfdyno.core.doctor.machine_facts import ChildFacts
from tfdyno.core.messages.child import Child, Nothing

TRY_TENSORFLOW = Child(
    module="tfdyno.runtime.base.try_tensorflow", request=Nothing, result=ChildFacts
)
