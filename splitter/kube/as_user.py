"""What a person does with kubectl, done for them: the label that a verb of the command line takes away.

Not splitter's own writing (that is `apply`): a verb that changes something changes what a user would,
with that user's rights, and the controller does the rest.
"""

from splitter.core.surface import LABEL_SPLIT
from splitter.kube.client import Client, Json


async def remove_label(client: Client, deployment: Json) -> str:
    """Take `splitter.io/split` away from a Deployment and return `namespace/name`.

    Raises ApiError; 409 when it is another object under the same name by now.
    """
    metadata = deployment["metadata"]
    path = f"/apis/apps/v1/namespaces/{metadata['namespace']}/deployments/{metadata['name']}"
    body: Json = {"metadata": {"uid": metadata["uid"], "labels": {LABEL_SPLIT: None}}}
    await client.send("PATCH", path, body, patch="merge")
    return f"{metadata['namespace']}/{metadata['name']}"
