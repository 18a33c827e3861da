# Written by `make docs` from the tables in __init__.py and registry.py.
from resight.client import connect as connect
from resight.datasets import load as sightings
from resight.datasets.sightings import Sightings as Sightings
from resight.experiments.evaluate import evaluate as evaluate
from resight.experiments.results import Result as Result
from resight.features.store import FeatureStore as FeatureStore
from resight.gallery.gallery import Gallery as Gallery
from resight.learners.camel import CAMEL as CAMEL
from resight.learners.euclidean import Euclidean as Euclidean
from resight.learners.irs import IRS as IRS
from resight.learners.itml import ITML as ITML
from resight.learners.kissme import KISSME as KISSME
from resight.learners.kissme import KernelKISSME as KernelKISSME
from resight.learners.kxqda import KXQDA as KXQDA
from resight.learners.ldml import LDML as LDML
from resight.learners.lfda import KernelLFDA as KernelLFDA
from resight.learners.lfda import LFDA as LFDA
from resight.learners.lmnn import LMNN as LMNN
from resight.learners.mfa import KernelMFA as KernelMFA
from resight.learners.mfa import MFA as MFA
from resight.learners.mlapg import MLAPG as MLAPG
from resight.learners.nfst import KernelNFST as KernelNFST
from resight.learners.nfst import NFST as NFST
from resight.learners.nk3ml import NK3ML as NK3ML
from resight.learners.normalizer import BlockNormalizer as BlockNormalizer
from resight.learners.xqda import XQDA as XQDA
from resight.models.files import load as load
from resight.models.fitting import fit as fit
from resight.models.model import Model as Model
from resight.report.displays import CMCDisplay as CMCDisplay
from resight.tuning.auto import AutoKXQDA as AutoKXQDA
from resight.workers.executors import cluster as cluster

__version__: str
__all__ = [
    "AutoKXQDA",
    "BlockNormalizer",
    "CAMEL",
    "CMCDisplay",
    "Euclidean",
    "FeatureStore",
    "Gallery",
    "IRS",
    "ITML",
    "KISSME",
    "KXQDA",
    "KernelKISSME",
    "KernelLFDA",
    "KernelMFA",
    "KernelNFST",
    "LDML",
    "LFDA",
    "LMNN",
    "MFA",
    "MLAPG",
    "Model",
    "NFST",
    "NK3ML",
    "Result",
    "Sightings",
    "XQDA",
    "__version__",
    "cluster",
    "connect",
    "evaluate",
    "fit",
    "load",
    "sightings",
]
